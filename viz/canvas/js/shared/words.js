// The words of a picture in the language of the page: WORDS has them by the English. What it lacks stays English.

function tr(text, facts = {}) {
  const said = typeof WORDS === "undefined" ? text : (WORDS[text] ?? text);
  return said.replace(/\{(\w+)\}/g, (whole, name) => facts[name] ?? whole);
}

// The name of an axis of tokens.
function roleText(role) {
  return { query: tr("query"), key: tr("key") }[role] ?? role;
}

// A number's English text as the language of the page writes it, with a true minus sign and powers of ten as in print.
function written(number) {
  const signs = typeof SIGNS === "undefined" ? {} : SIGNS;
  const raised = (power) => [...power].map((digit) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["−0123456789".indexOf(digit)]).join("");
  return number
    .replace(/-/g, "−")
    .replace(/[.,]/g, (sign) => signs[sign] ?? sign)
    .replace(/(?<![\d.,])1e\+?(−?\d+)|e\+?(−?\d+)/, (_, whole, power) => (whole ? `10${raised(whole)}` : ` · 10${raised(power)}`));
}

function percentText(share) {
  return `${(100 * share).toFixed(0)}${typeof SIGNS === "undefined" ? "%" : SIGNS["%"]}`;
}

// The text in the quotation marks of the language.
function inQuotes(text) {
  const [opening, closing] = typeof SIGNS === "undefined" ? "“”" : SIGNS["“”"];
  return `${opening}${text}${closing}`;
}

function fixed(value, digits) {
  return written(value.toFixed(digits));
}
