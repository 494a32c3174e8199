// Measures what an access log to a file costs a request, and the table of it; knows no other proxy.
import { describeCommit, describeMachine } from "./machine.ts";
import {
  compare,
  type ManyTargetsInput,
  type ManyTargetsResult,
  middlePair,
  PAIRS,
  startWith,
  targetsOf,
} from "./many-targets.ts";
import { toTable } from "./report.ts";

/** Processor time per request with the log, as a multiple of that without. */
const AT_MOST = 1.1;

const FORMATS = ["json", "combined"] as const;

export type AccessLogRows = ReadonlyMap<(typeof FORMATS)[number], ManyTargetsResult>;

/** Two gateways that differ in a log of every request, which goes to a file with all settings as they are by default. */
export async function measureAccessLog(input: ManyTargetsInput): Promise<AccessLogRows> {
  const rows = new Map<(typeof FORMATS)[number], ManyTargetsResult>();
  for (const format of FORMATS) {
    const compareOne = (pair: number) =>
      comparePair(input, { format, suffix: `${format}-${pair}` });
    rows.set(format, await middlePair(compareOne));
  }
  return rows;
}

/** Both are new: one that has served for longer would be the quicker one. */
async function comparePair(
  input: ManyTargetsInput,
  { format, suffix }: { readonly format: string; readonly suffix: string },
): Promise<ManyTargetsResult> {
  const service = { targets: targetsOf(input, 1) };
  const silent = await startWith(input, `no-log-${suffix}`, service);
  try {
    const logging = await startWith(input, `log-${suffix}`, service);
    try {
      await logging.api.send("POST", "/api/v1/plugins", {
        name: "access-log",
        config: { sinks: [{ file: { path: "access.log", format } }] },
      });
      return await compare([silent, logging], input);
    } finally {
      await logging.program.stop();
    }
  } finally {
    await silent.program.stop();
  }
}

export function accessLogTable(rows: AccessLogRows): string {
  const lines = [...rows].map(([format, { ratio, errors }]) => {
    const isReached = ratio <= AT_MOST && errors === 0;
    return [
      `CPU per request with an access log (${format}) to a file against none, 64B, plain HTTP/1.1`,
      `${AT_MOST}x`,
      `${ratio.toFixed(2)}x`,
      isReached ? "reached" : "missed",
    ];
  });
  return toTable([["target", "at most", "measured", "verdict"], ...lines]);
}

/** The part of docs/benchmarks.md. */
export const accessLogToMarkdown = (rows: AccessLogRows): string => `## Access logs

${[
  ...describeMachine(),
  `Date: ${new Date().toISOString().slice(0, 10)}, commit ${describeCommit()}`,
]
  .map((line) => `- ${line}`)
  .join("\n")}

${accessLogTable(rows)}

Two gateways with one worker take turns; one of them writes each request to a file in its data directory, with batches and rotation as
they are by default. Of the ratios of all turns the middle one counts, and of ${PAIRS} pairs of new processes the middle pair.
`;
