// What cache hits and compression must cost at most, and the tables of a measurement of both; measures nothing.
import { type ContentRow, GZIP_LEVEL, SETS } from "./content.ts";
import { describeCommit, describeMachine } from "./machine.ts";
import { alignColumns, type Table, toTable } from "./report.ts";

interface Limit {
  readonly what: ContentRow["what"];
  readonly body: string;
  readonly ratio: "toProxied" | "toNginx";
  readonly atMost: number;
}

const LIMITS: readonly Limit[] = [
  { what: "cache hit", body: "64B", ratio: "toProxied", atMost: 0.6 },
  { what: "cache hit", body: "10KB", ratio: "toProxied", atMost: 0.6 },
  { what: "cache hit", body: "64B", ratio: "toNginx", atMost: 1.2 },
  { what: "cache hit", body: "10KB", ratio: "toNginx", atMost: 1.2 },
  { what: "compressed", body: "10KB.json", ratio: "toNginx", atMost: 1.3 },
  { what: "compressed", body: "100KB.json", ratio: "toNginx", atMost: 1.3 },
];

const AGAINST = { toProxied: "the proxied request", toNginx: "nginx" } as const;

function verdicts(rows: readonly ContentRow[]): Table {
  const lines = LIMITS.map(({ what, body, ratio, atMost }) => {
    const row = rows.find((one) => one.what === what && one.body === body);
    const words = `CPU per request, ${what} of ${body} against ${AGAINST[ratio]}`;
    if (row === undefined || row.errors > 0) return [words, `${atMost}x`, "–", "not measured"];
    const isReached = row[ratio] <= atMost;
    const measured = `${row[ratio].toFixed(2)}x`;
    return [words, `${atMost}x`, measured, isReached ? "reached" : "missed"];
  });
  return [["target", "at most", "measured", "verdict"], ...lines];
}

function costs(rows: readonly ContentRow[]): Table {
  // A row with failed requests is no result.
  const lines = rows.map((row) => [
    row.what,
    row.body,
    ...(row.errors > 0
      ? [`${row.errors} errors`, "–", "–"]
      : [row.proxiedUs.toFixed(1), row.ownUs.toFixed(1), row.nginxUs.toFixed(1)]),
  ]);
  return [["what", "body", "proxied µs", "Sluice µs", "nginx µs"], ...lines];
}

export const contentToText = (rows: readonly ContentRow[]): string =>
  `\nCache hits and compression\n${alignColumns(verdicts(rows))}\n\n${alignColumns(costs(rows))}`;

export function contentToMarkdown(
  rows: readonly ContentRow[],
  { seconds, rounds }: { readonly seconds: number; readonly rounds: number },
): string {
  const facts = [
    ...describeMachine(),
    `Date: ${new Date().toISOString().slice(0, 10)}, commit ${describeCommit()}`,
  ];
  return `## Cache hits and compression

${facts.map((line) => `- ${line}`).join("\n")}

${toTable(verdicts(rows))}

Processor time per request:

${toTable(costs(rows))}

Three gateways with one worker each, one that only proxies, one with \`response-cache\` and one with \`compress\` (gzip, level
${GZIP_LEVEL}), and an nginx with \`proxy_cache\` and with \`gzip_comp_level ${GZIP_LEVEL}\`, all on one core, take turns of ${seconds} s, ${rounds} each; of ${SETS} sets
of new processes the middle figures count. Nothing but the plugins differs; requests are those of a browser without credentials.
`;
}
