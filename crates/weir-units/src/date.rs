//! Dates of days that are counted since 1970.
//!
//! In: a number of days. Out: year, month and day of the Gregorian calendar. Not here: how a date
//! is written, and time zones.

/// A day of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// Year.
    pub year: i64,
    /// Month, from 1.
    pub month: i64,
    /// Day of the month, from 1.
    pub day: i64,
}

impl Date {
    /// The date of a day since 1970-01-01, counted in eras of 400 years that begin in March
    /// (Hinnant, "chrono-compatible low-level date algorithms").
    pub const fn of_unix_day(day: i64) -> Self {
        let shifted = day + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let from_march = (5 * of_year + 2) / 153;
        let is_early = from_march >= 10;
        Self {
            year: year + era * 400 + is_early as i64,
            month: if is_early {
                from_march - 9
            } else {
                from_march + 3
            },
            day: of_year - (153 * from_march + 2) / 5 + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leap_years_and_days_before_1970_have_their_dates() {
        let date = |day| {
            let Date { year, month, day } = Date::of_unix_day(day);
            (year, month, day)
        };
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(-1), (1969, 12, 31));
        assert_eq!(date(11_015), (2000, 2, 28));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(11_017), (2000, 3, 1));
        assert_eq!(date(20_778), (2026, 11, 21));
    }
}
