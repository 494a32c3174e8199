// A real BIND on a free port of 127.0.0.1, primary server of zones that accept updates.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Resolver } from "node:dns/promises";
import { pathOf } from "./needs.ts";
import { eventually } from "./poll.ts";
import { quietPort } from "./quiet-port.ts";

export interface TsigKey {
  readonly name: string;
  readonly algorithm: "hmac-sha256" | "hmac-sha512";
  /** Base64. */
  readonly secret: string;
}

export interface BindZone {
  readonly name: string;
  /** Name of the key that may write TXT records; absent: none. */
  readonly key?: string;
  /** Lines beside SOA and NS. */
  readonly records?: readonly string[];
}

export interface Bind {
  /** `127.0.0.1:port`. */
  readonly address: string;
  /** Texts of the TXT records of a name, sorted. */
  texts(name: string): Promise<string[]>;
  stop(): Promise<void>;
}

const zoneText = ({ records = [] }: BindZone) =>
  [
    "$TTL 60",
    "@ SOA ns1 hostmaster 1 3600 600 86400 0",
    "@ NS ns1",
    "ns1 A 127.0.0.1",
    ...records,
    "",
  ].join("\n");

/** Resolves when BIND answers; throws with its message when it does not start. */
export async function startBind(given: {
  readonly zones: readonly BindZone[];
  readonly keys: readonly TsigKey[];
}): Promise<Bind> {
  const dir = mkdtempSync(join(tmpdir(), "sluice-bind-"));
  const port = quietPort();
  for (const zone of given.zones) await Bun.write(join(dir, `${zone.name}.zone`), zoneText(zone));
  await Bun.write(join(dir, "named.conf"), configuration(dir, port, given));
  const child = Bun.spawn(
    [pathOf("named") ?? "named", "-4", "-g", "-c", join(dir, "named.conf"), "-n", "1"],
    {
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  let words = "";
  const reading = (async () => {
    for await (const chunk of child.stderr) words += Buffer.from(chunk).toString();
  })();
  const stop = async () => {
    child.kill("SIGKILL");
    await child.exited;
    await reading;
    rmSync(dir, { recursive: true, force: true });
  };
  const resolver = () => {
    const asked = new Resolver({ timeout: 1000, tries: 2 });
    asked.setServers([`127.0.0.1:${port}`]);
    return asked;
  };
  const first = given.zones[0]?.name ?? "";
  const answers = () =>
    resolver()
      .resolveSoa(first)
      .then(
        () => true,
        () => child.exitCode !== null,
      );
  await eventually(answers).catch(() => undefined);
  if (child.exitCode !== null) throw new Error(`BIND did not start:\n${words}`);
  return {
    address: `127.0.0.1:${port}`,
    texts: (name) =>
      resolver()
        .resolveTxt(name)
        .then(
          (records) => records.map((parts) => parts.join("")).sort(),
          () => [],
        ),
    stop,
  };
}

const configuration = (
  dir: string,
  port: number,
  { zones, keys }: Parameters<typeof startBind>[0],
) =>
  [
    `options { directory "${dir}"; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; };`,
    '  pid-file "named.pid"; session-keyfile "session.key"; recursion no; dnssec-validation no; };',
    "controls { };",
    ...keys.map(
      ({ name, algorithm, secret }) =>
        `key "${name}" { algorithm ${algorithm}; secret "${secret}"; };`,
    ),
    ...zones.map(
      ({ name, key }) =>
        `zone "${name}" { type primary; file "${name}.zone"; ${key === undefined ? "" : `update-policy { grant "${key}" zonesub TXT; };`} };`,
    ),
    "",
  ].join("\n");
