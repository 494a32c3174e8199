// Formats durations, sizes, rates and shares; knows no metric.

/** `0.42 ms`, `12 ms`, `3.1 s`. */
export function inMilliseconds(ms: number): string {
  if (ms >= 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  return ms >= 10 || ms === 0 ? `${Math.round(ms)} ms` : `${ms.toFixed(2)} ms`;
}

const units = ["B", "KB", "MB", "GB", "TB"];

/** `1.2 MB`. */
export function inBytes(count: number): string {
  const step = count < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(count) / 3));
  const value = count / 1000 ** step;
  return `${step === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[step]}`;
}

const whole = new Intl.NumberFormat("en");

/** `12,345`. */
export const inDigits = (count: number): string => whole.format(Math.round(count));

/** A rate per second: `0.02`, `3.4`, `1,024`. */
export function inRate(perSecond: number): string {
  if (perSecond === 0) return "0";
  if (perSecond < 0.01) return "<0.01";
  if (perSecond < 1) return perSecond.toFixed(2);
  return perSecond < 100 ? String(Math.round(perSecond * 10) / 10) : inDigits(perSecond);
}

/** A part of a whole: 0.0123 is `1.2 %`. */
export function inPercent(share: number): string {
  const percent = share * 100;
  if (percent === 0) return "0 %";
  if (percent < 0.1) return "<0.1 %";
  return `${percent >= 10 ? Math.round(percent) : Math.round(percent * 10) / 10} %`;
}
