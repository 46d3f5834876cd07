//! Values with a grammar of their own: lists of sizes, models, faults.
//!
//! In: the text of a value. Out: what it means, or what was expected instead.

use weir_schema::{FaultKind, InjectedFault, LARGEST_EXPONENT, Model};

/// Exponents, `0,1,2,8`.
pub(super) fn exponents(text: &str) -> Result<Vec<u8>, String> {
    let largest = LARGEST_EXPONENT;
    let one = |word: &str| word.parse::<u8>().ok().filter(|e| *e <= largest);
    let all: Option<Vec<u8>> = text.split(',').map(|w| one(w.trim())).collect();
    let all =
        all.ok_or_else(|| format!("it takes exponents from 0 to {largest}, such as 0,4,8"))?;
    let mut seen = [false; 256];
    let again = all
        .iter()
        .find(|e| std::mem::replace(&mut seen[usize::from(**e)], true));
    match again {
        Some(e) => Err(format!(
            "{e} stands there twice; every size is measured once"
        )),
        None => Ok(all),
    }
}

/// `520n`, `520n-parallel`, `fit`, or `c=2,w=32,f=156.25e6,lat=520e-9[,dup=1|2]`.
pub(super) fn model(text: &str) -> Result<Model, String> {
    if let Some(key) = repeated(text) {
        return Err(format!("`{key}=` stands there twice"));
    }
    match text {
        "520n" => Ok(board(false)),
        "520n-parallel" => Ok(board(true)),
        "fit" => Ok(Model::Fit),
        _ => channel(text).ok_or_else(|| {
            "it takes 520n, 520n-parallel, fit, or c=2,w=32,f=156.25e6,lat=520e-9[,dup=1|2]"
                .to_owned()
        }),
    }
}

/// Constants of the Bittware 520N.
const fn board(duplex: bool) -> Model {
    Model::Channel {
        channels: 2,
        width_bytes: 32,
        frequency_hz: 156.25e6,
        latency_s: 520e-9,
        duplex,
    }
}

fn channel(text: &str) -> Option<Model> {
    let fields = fields(text)?;
    let known = ["c", "w", "f", "lat", "dup"];
    if fields.iter().any(|(key, _)| !known.contains(key)) {
        return None;
    }
    let whole = |key: &str| {
        let value = find(&fields, key)?.parse::<u32>().ok()?;
        (value > 0).then_some(value)
    };
    let real = |key: &str, least: f64| {
        let value = find(&fields, key)?.parse::<f64>().ok()?;
        (value.is_finite() && value >= least).then_some(value)
    };
    let duplex = match find(&fields, "dup") {
        None | Some("1") => false,
        Some("2") => true,
        Some(_) => return None,
    };
    Some(Model::Channel {
        channels: whole("c")?,
        width_bytes: whole("w")?,
        frequency_hz: real("f", 1.0)?,
        latency_s: real("lat", 0.0)?,
        duplex,
    })
}

/// `flip:rank=1,size=8,byte=3`, `stall:rank=0,size=4,after=2`, `die:…`.
pub(super) fn fault(text: &str) -> Result<InjectedFault, String> {
    let wrong = "it takes flip:rank=R,size=E,byte=B, or stall or die:rank=R,size=E,after=N";
    if let Some(key) = text.split_once(':').and_then(|(_, rest)| repeated(rest)) {
        return Err(format!("`{key}=` stands there twice"));
    }
    read_fault(text).ok_or_else(|| wrong.to_owned())
}

fn read_fault(text: &str) -> Option<InjectedFault> {
    let (word, rest) = text.split_once(':')?;
    let (kind, place) = match word {
        "flip" => (FaultKind::Flip, "byte"),
        "stall" => (FaultKind::Stall, "after"),
        "die" => (FaultKind::Die, "after"),
        _ => return None,
    };
    let fields = fields(rest)?;
    let known = ["rank", "size", place];
    if fields.iter().any(|(key, _)| !known.contains(key)) {
        return None;
    }
    Some(InjectedFault {
        kind,
        rank: find(&fields, "rank")?.parse().ok()?,
        exponent: find(&fields, "size")?.parse().ok()?,
        at: find(&fields, place).unwrap_or("0").parse().ok()?,
    })
}

fn fields(text: &str) -> Option<Vec<(&str, &str)>> {
    text.split(',').map(|f| f.split_once('=')).collect()
}

/// A key that is given more than once.
fn repeated(text: &str) -> Option<&str> {
    let fields = fields(text)?;
    let is_again = |(i, (key, _)): &(usize, &(&str, &str))| find(&fields[..*i], key).is_some();
    let again = fields.iter().enumerate().find(is_again);
    again.map(|(_, (key, _))| *key)
}

fn find<'a>(fields: &[(&str, &'a str)], key: &str) -> Option<&'a str> {
    fields.iter().find(|(k, _)| *k == key).map(|(_, v)| *v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_mean_what_they_say() {
        assert_eq!(exponents("0,4, 34").unwrap(), [0, 4, 34]);
        assert!(exponents("0,35").is_err() && exponents("").is_err());
        assert!(
            exponents("3,4,3")
                .unwrap_err()
                .contains("3 stands there twice")
        );
    }

    #[test]
    fn models_are_a_board_a_channel_or_a_fit() {
        let spelled = "c=2,w=32,f=156.25e6,lat=520e-9";
        assert_eq!(model("520n").unwrap(), model(spelled).unwrap());
        let both = model(&format!("{spelled},dup=2")).unwrap();
        assert_eq!(model("520n-parallel").unwrap(), both);
        assert_eq!(model("fit").unwrap(), Model::Fit);
        for wrong in [
            "521n",
            "c=2",
            "c=0,w=32,f=1e6,lat=0",
            "c=2,w=32,f=1e6,lat=0,dup=3",
        ] {
            assert!(model(wrong).is_err(), "{wrong}");
        }
        assert!(model(&format!("{spelled},x=1")).is_err());
        let twice = model(&format!("{spelled},c=1")).unwrap_err();
        assert_eq!(twice, "`c=` stands there twice");
    }

    #[test]
    fn faults_name_kind_rank_size_and_place() {
        let flip = fault("flip:rank=1,size=8,byte=3").unwrap();
        let wanted = (FaultKind::Flip, 1, 8, 3);
        assert_eq!((flip.kind, flip.rank, flip.exponent, flip.at), wanted);
        assert_eq!(fault("die:rank=0,size=2").unwrap().kind, FaultKind::Die);
        for twice in ["flip:rank=1,size=8,rank=0", "die:rank=1,size=8,rank=1"] {
            assert_eq!(fault(twice).unwrap_err(), "`rank=` stands there twice");
        }
        for wrong in [
            "flip",
            "flip:rank=1",
            "flop:rank=1,size=1",
            "flip:rank=1,size=2,after=3",
        ] {
            assert!(fault(wrong).is_err(), "{wrong}");
        }
    }
}
