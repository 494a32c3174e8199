// The Date of responses that have none (RFC 9110 section 6.6.1), made once a second; knows no response.

const made = { second: 0, value: "" };

export function dateValue(): string {
  const now = Date.now();
  const second = Math.floor(now / 1000);
  if (second !== made.second) {
    made.second = second;
    made.value = new Date(now).toUTCString();
  }
  return made.value;
}
