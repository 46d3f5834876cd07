//! Colours and dashes: eight that people with any colour vision tell apart, each with a dash of its
//! own, readable on both backgrounds.

/// A theme's colours.
pub(crate) struct Palette {
    /// Behind everything.
    pub(crate) background: &'static str,
    /// Text.
    pub(crate) text: &'static str,
    /// Lesser text: captions, ticks.
    pub(crate) dim: &'static str,
    /// Lines of the grid.
    pub(crate) grid: &'static str,
    /// Stretches that stand out.
    pub(crate) shade: &'static str,
    /// Failures.
    pub(crate) bad: &'static str,
    /// Warnings.
    pub(crate) warn: &'static str,
    /// Panels and heads of tables.
    pub(crate) panel: &'static str,
    /// Lines of plots.
    pub(crate) lines: [&'static str; 8],
}

/// Dark on light.
pub(crate) const LIGHT: Palette = Palette {
    background: "#ffffff",
    text: "#1b1f24",
    dim: "#59636e",
    grid: "#e3e6ea",
    shade: "#f6d5cc",
    bad: "#b3261e",
    warn: "#8a5a00",
    panel: "#f5f7f9",
    lines: [
        "#0067b1", "#c2410c", "#00795c", "#a2358f", "#7a6200", "#4a4ab8", "#00788f", "#3f4650",
    ],
};

/// Light on dark.
pub(crate) const DARK: Palette = Palette {
    background: "#15181c",
    text: "#e8eaed",
    dim: "#a3adb8",
    grid: "#2b3138",
    shade: "#4a2a22",
    bad: "#ff8a80",
    warn: "#f2c14e",
    panel: "#1d2227",
    lines: [
        "#56b4e9", "#ff9a5c", "#35c79a", "#e68fcf", "#e3c53f", "#aab0ff", "#5fd4e6", "#c9cfd6",
    ],
};

/// The dash of each colour.
const DASHES: [&str; 8] = [
    "",
    "8 3",
    "2 3",
    "10 3 2 3",
    "5 5",
    "14 4",
    "10 3 2 3 2 3",
    "1 2",
];

/// Opacity of the cells of a heat map, from the weakest to the strongest.
pub(crate) const STRENGTHS: [&str; 6] = [".16", ".33", ".5", ".67", ".84", "1"];

impl Palette {
    /// Its colours as variables of a style sheet.
    pub(crate) fn variables(&self) -> String {
        let named = [
            ("background", self.background),
            ("text", self.text),
            ("dim", self.dim),
            ("grid", self.grid),
            ("shade", self.shade),
            ("bad", self.bad),
            ("warn", self.warn),
            ("panel", self.panel),
        ];
        let named = named.map(|(name, color)| format!("--{name}:{color}"));
        let lines = self.lines.iter().enumerate();
        let lines = lines.map(|(i, color)| format!("--line{i}:{color}"));
        let all: Vec<String> = named.into_iter().chain(lines).collect();
        all.join(";")
    }
}

/// The rules that draw a picture with these variables.
pub(crate) fn style_rules() -> String {
    let mut out = String::from(
        "svg text{font:12px system-ui,sans-serif;fill:var(--dim)}\
         svg .title{font-weight:600;fill:var(--text);paint-order:stroke;stroke:var(--panel);stroke-width:3px}\
         svg .grid{stroke:var(--grid)}svg .axis{stroke:var(--dim)}\
         svg .shade{fill:var(--shade)}\
         svg .rule{stroke:var(--text);stroke-dasharray:3 3}\
         svg .whisker{stroke:var(--text);stroke-width:1.5}\
         svg .line{fill:none;stroke-width:1.8;stroke-linejoin:round}\
         svg .band{opacity:.22;stroke:none}",
    );
    for (i, dash) in DASHES.iter().enumerate() {
        push!(
            out,
            "svg .s{i}{{stroke:var(--line{i})}}svg .f{i}{{fill:var(--line{i})}}"
        );
        if !dash.is_empty() {
            push!(out, "svg .line.s{i}{{stroke-dasharray:{dash}}}");
        }
    }
    out += "svg [class^=h]{fill:none;stroke:var(--line0);shape-rendering:crispEdges}";
    for (i, opacity) in STRENGTHS.iter().enumerate() {
        push!(out, "svg .h{i}{{stroke-opacity:{opacity}}}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance, as the accessibility guidelines define it.
    fn luminance(color: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&color[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn text_and_lines_stand_out_in_both_themes() {
        for theme in [LIGHT, DARK] {
            for behind in [theme.background, theme.panel] {
                for text in [theme.text, theme.dim, theme.bad, theme.warn] {
                    let found = contrast(text, behind);
                    assert!(found >= 4.5, "{text} on {behind}: {found}");
                }
                for line in theme.lines {
                    let found = contrast(line, behind);
                    assert!(found >= 3.0, "{line} on {behind}: {found}");
                }
            }
        }
    }

    #[test]
    fn no_two_lines_have_one_dash() {
        let mut dashes = DASHES.to_vec();
        dashes.sort_unstable();
        dashes.dedup();
        assert_eq!(dashes.len(), LIGHT.lines.len());
    }
}
