// Runs the first commands of the README against the executable, and draws the session as an animated picture; `make first-minute`.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dir, "..");

/** The commands of the README's blocks of shell below the heading `heading`, up to the next one of its level. */
export function shellBlocks(markdown: string, heading: string): readonly string[] {
  const begin = markdown.indexOf(`\n## ${heading}\n`);
  if (begin < 0) throw new Error(`no heading "${heading}"`);
  const end = markdown.indexOf("\n## ", begin + 4);
  const section = markdown.slice(begin, end < 0 ? undefined : end);
  return [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => (block ?? "").trim());
}

export interface Step {
  readonly command: string;
  readonly output: string;
}

const COLUMNS = 104;
/** Lines of output shown of one command; the rest is an ellipsis. */
const ROWS = 8;
const LINE = 17;

/** Steps one below the other, each line at its time: typed commands at the pace of a reader, output at once. */
export function draw(steps: readonly Step[]): string {
  const lines: { readonly text: string; readonly kind: string; readonly at: number }[] = [];
  let at = 0.5;
  for (const { command, output } of steps) {
    for (const [row, text] of command.split("\n").entries()) {
      lines.push({ text: `${row === 0 ? "$ " : "  "}${text.trim()}`, kind: "command", at });
      at += 0.9;
    }
    for (const text of shown(output)) lines.push({ text, kind: "output", at });
    at += 2.2;
  }
  const height = lines.length * LINE + 32;
  const texts = lines.map(
    ({ text, kind, at: second }, row) =>
      `<text class="${kind}" x="16" y="${row * LINE + 28}" style="animation-delay:${second.toFixed(1)}s">${escapeXml(text)}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="880" viewBox="0 0 880 ${height}" role="img" aria-labelledby="title">
<title id="title">A terminal: a service and a route are created with curl, and the next request is served</title>
<style>
text { font: 13px ui-monospace, "DejaVu Sans Mono", monospace; white-space: pre; opacity: 0; animation: appear 0.2s forwards; }
.command { fill: #e8edf2; }
.output { fill: #8fb3d1; }
@keyframes appear { to { opacity: 1; } }
@media (prefers-reduced-motion: reduce) { text { animation: none; opacity: 1; } }
</style>
<rect width="880" height="${height}" rx="8" fill="#14202b"/>
${texts.join("\n")}
</svg>
`;
}

function shown(output: string): readonly string[] {
  if (output === "") return [];
  const rows = output
    .trimEnd()
    .split("\n")
    .map((row) => row.trimEnd())
    .map((row) => (row.length > COLUMNS ? `${row.slice(0, COLUMNS - 1)}…` : row));
  return rows.length > ROWS ? [...rows.slice(0, ROWS), "…"] : rows;
}

const escapeXml = (text: string) =>
  text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

/** Free ports in place of those that the README names. */
export function onPorts(text: string, ports: ReadonlyMap<number, number>): string {
  return text.replace(/\b(?:3000|3001|8080|8443|9080)\b/g, (port) =>
    String(ports.get(Number(port)) ?? port),
  );
}

async function record(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "sluice-first-minute-"));
  const upstream = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response("Hello from the application on port 3000\n"),
  });
  const serve = ["serve", "--data-dir", directory, "--admin", "127.0.0.1:0"];
  const gateway = Bun.spawn(
    [join(root, "dist/sluice"), ...serve, "--http", "127.0.0.1:0", "--https", "127.0.0.1:0"],
    { stdout: "ignore", stderr: "pipe" },
  );
  try {
    const admin = new URL(await managementOf(gateway.stderr));
    const listeners = (await (await fetch(new URL("/api/v1/listeners", admin))).json()) as {
      readonly name: string;
      readonly port: number;
    }[];
    const portOf = (name: string) => listeners.find((each) => each.name === name)?.port ?? 0;
    const ports = new Map([
      [9080, Number(admin.port)],
      [8080, portOf("http")],
      [8443, portOf("https")],
      [3000, Number(upstream.port)],
    ]);
    const back = new Map([...ports].map(([from, to]) => [to, from]));
    const readme = await Bun.file(join(root, "README.md")).text();
    const commands = shellBlocks(readme, "Quick start")
      .slice(0, 6)
      .filter((block) => block.startsWith("curl"))
      .flatMap((block) => block.split("\n\n"))
      .slice(0, 3);
    const steps: Step[] = [{ command: "make run", output: "" }];
    for (const command of commands) {
      const quiet = onPorts(command, ports).replace(/^curl /gm, "curl -s ");
      const child = Bun.spawn(["bash", "-c", quiet], { stdout: "pipe" });
      const output = (await new Response(child.stdout).text()).replace(/\d{4,5}/g, (digits) =>
        String(back.get(Number(digits)) ?? digits),
      );
      steps.push({ command, output });
    }
    await Bun.write(join(root, "docs/images/first-minute.svg"), draw(steps));
  } finally {
    gateway.kill();
    await gateway.exited;
    await upstream.stop(true);
    await rm(directory, { recursive: true, force: true });
  }
}

/** Reads the log until the line that says where the management API is. */
async function managementOf(log: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of log) {
    text += new TextDecoder().decode(chunk);
    const line = text.split("\n").find((each) => each.includes('"message":"serving"'));
    const management = line === undefined ? null : /"management":"([^"]+)"/.exec(line);
    if (management?.[1] !== undefined) return management[1];
  }
  throw new Error(`the gateway does not serve: ${text}`);
}

if (import.meta.main) await record();
