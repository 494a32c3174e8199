// What a running program holds, taken every few seconds, and whether it grows; knows no traffic.
import { readdirSync, readFileSync } from "node:fs";

export interface Sample {
  /** Since the start. */
  readonly seconds: number;
  /** Resident bytes without those of files, which the system takes back when it wants. */
  readonly memory: number;
  /** The part of it that another process could share; what threads share is not told apart from what they own. */
  readonly shared: number;
  readonly descriptors: number;
  readonly maps: number;
  readonly threads: number;
}

export type Figure = Exclude<keyof Sample, "seconds">;
export const figures: readonly Figure[] = ["memory", "shared", "descriptors", "maps", "threads"];

export interface Growth {
  readonly figure: Figure;
  /** At the beginning and the end of the second half, on the line that fits best. */
  readonly from: number;
  readonly to: number;
  readonly highest: number;
  /** Of `from`; below 0 when it shrinks. */
  readonly share: number;
  readonly isTooMuch: boolean;
}

const MOST_GROWTH = 0.05;
/** A handful of descriptors more is a client that came, no leak, whatever share of the whole it is. */
const NOISE: Readonly<Record<Figure, number>> = {
  memory: 4_000_000,
  shared: 1_000_000,
  descriptors: 8,
  maps: 12,
  threads: 2,
};
/** Samples of which the middle one counts: a large body that passes is no growth. */
const WINDOW = 5;

/** Null: the process is gone. */
export function takeSample(pid: number, seconds: number): Sample | null {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const number = (name: string) =>
      Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0);
    return {
      seconds,
      memory: (number("RssAnon") + number("RssShmem")) * 1024,
      shared: number("RssShmem") * 1024,
      descriptors: readdirSync(`/proc/${pid}/fd`).length,
      maps: readFileSync(`/proc/${pid}/maps`, "utf8").split("\n").length - 1,
      threads: number("Threads"),
    };
  } catch {
    return null;
  }
}

/** How each figure moves in the second half, when all that is made once has been made. */
export function growthOf(samples: readonly Sample[]): Growth[] {
  const half = samples.slice(Math.floor(samples.length / 2));
  return figures.map((figure) => {
    const values = smoothed(half.map((sample) => sample[figure]));
    const { from, to } = line(values);
    const share = from === 0 ? 0 : (to - from) / from;
    const isTooMuch = share > MOST_GROWTH && to - from > NOISE[figure];
    const highest = Math.max(...samples.map((sample) => sample[figure]));
    return { figure, from, to, highest, share, isTooMuch };
  });
}

function smoothed(values: readonly number[]): number[] {
  return values.map((_, at) => {
    const start = Math.max(0, Math.min(at - (WINDOW >> 1), values.length - WINDOW));
    const window = values.slice(start, start + WINDOW).toSorted((a, b) => a - b);
    return window[window.length >> 1] ?? 0;
  });
}

/** Least squares over values at equal distances. */
function line(values: readonly number[]): { readonly from: number; readonly to: number } {
  const last = values.length - 1;
  if (last < 1) return { from: values[0] ?? 0, to: values[0] ?? 0 };
  const middle = last / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  let [above, below] = [0, 0];
  for (const [at, value] of values.entries()) {
    above += (at - middle) * (value - mean);
    below += (at - middle) ** 2;
  }
  const slope = above / below;
  return { from: mean - slope * middle, to: mean + slope * middle };
}
