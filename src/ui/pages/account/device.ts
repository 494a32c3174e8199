// Browser and system from the User-Agent header, to recognize sessions by; renders nothing.

/** In this order: most browsers also name one of those further down. */
const browsers = [
  ["Edg", "Edge"],
  ["OPR", "Opera"],
  ["SamsungBrowser", "Samsung Internet"],
  ["Firefox", "Firefox"],
  ["FxiOS", "Firefox"],
  ["CriOS", "Chrome"],
  ["HeadlessChrome", "Chrome"],
  ["Chrome", "Chrome"],
  ["Safari", "Safari"],
] as const;

const systems = [
  ["Android", "Android"],
  ["iPhone", "iPhone"],
  ["iPad", "iPad"],
  ["CrOS", "ChromeOS"],
  ["Windows", "Windows"],
  ["Mac OS X", "macOS"],
  ["Linux", "Linux"],
] as const;

/** `Firefox on Linux`; of a program its name, such as `curl`. */
export function deviceOf(userAgent: string): string {
  const browser = browsers.find(([word]) => userAgent.includes(`${word}/`))?.[1];
  const system = systems.find(([word]) => userAgent.includes(word))?.[1];
  if (browser === undefined)
    return /^[\w.-]+/.exec(userAgent)?.[0].slice(0, 40) ?? "Unknown program";
  return system === undefined ? browser : `${browser} on ${system}`;
}
