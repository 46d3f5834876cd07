//! The date line of C's `ctime`.

use weir_units::Date;

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// `Sat Nov 21 06:25:37 2026`, for seconds since 1970 with the offset of local time added.
pub(crate) fn ctime(seconds: i64) -> String {
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let Date {
        year,
        month,
        day: date,
    } = Date::of_unix_day(day);
    format!(
        "{} {} {date:2} {:02}:{:02}:{:02} {year}",
        pick(&DAYS, (day + 4).rem_euclid(7)),
        pick(&MONTHS, month - 1),
        second / 3600,
        second / 60 % 60,
        second % 60,
    )
}

fn pick(names: &[&'static str], index: i64) -> &'static str {
    usize::try_from(index)
        .ok()
        .and_then(|i| names.get(i).copied())
        .unwrap_or("???")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_ctime_writes_them() {
        assert_eq!(ctime(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(ctime(951_782_399), "Mon Feb 28 23:59:59 2000");
        assert_eq!(ctime(951_782_400), "Tue Feb 29 00:00:00 2000");
        assert_eq!(ctime(1_795_242_338), "Sat Nov 21 06:25:38 2026");
        assert_eq!(ctime(-1), "Wed Dec 31 23:59:59 1969");
    }
}
