// Parses dates of HTTP (RFC 9110 section 5.6.7), which are stricter than those of JavaScript; knows no header.

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const MONTH = `(?<month>${MONTHS.join("|")})`;
const TIME = "(?<hour>\\d\\d):(?<minute>\\d\\d):(?<second>\\d\\d)";

/** IMF-fixdate, RFC 850 and asctime. Case does not matter, and GMT is the only zone (RFC 9111 section 4.2). */
const FORMS = [
  `^(?:mon|tue|wed|thu|fri|sat|sun), (?<day>\\d\\d) ${MONTH} (?<year>\\d{4}) ${TIME} gmt$`,
  `^(?:mon|tues|wednes|thurs|fri|satur|sun)day, (?<day>\\d\\d)-${MONTH}-(?<year>\\d\\d) ${TIME} gmt$`,
  `^(?:mon|tue|wed|thu|fri|sat|sun) ${MONTH} (?<day>[ \\d]\\d) ${TIME} (?<year>\\d{4})$`,
].map((form) => new RegExp(form, "i"));

/** Milliseconds since 1970; null: no valid date. */
export function parseHttpDate(value: string | null): number | null {
  if (value === null) return null;
  for (const form of FORMS) {
    const parts = form.exec(value.trim())?.groups;
    if (parts === undefined) continue;
    const { year = "", month = "", day = "", hour, minute, second } = parts;
    const [hours, minutes, seconds] = [Number(hour), Number(minute), Number(second)];
    // A leap second is the second after it.
    if (hours > 23 || minutes > 59 || seconds > 60) return null;
    const at = MONTHS.indexOf(month.toLowerCase());
    const time = new Date(Date.UTC(yearOf(year), at, Number(day)));
    if (time.getUTCMonth() !== at) return null;
    return time.setUTCHours(hours, minutes, seconds);
  }
  return null;
}

/** A year of two digits that would be more than 50 years ahead is in the past. */
function yearOf(digits: string): number {
  if (digits.length === 4) return Number(digits);
  const thisYear = new Date().getUTCFullYear();
  const year = thisYear - (thisYear % 100) + Number(digits);
  return year > thisYear + 50 ? year - 100 : year;
}
