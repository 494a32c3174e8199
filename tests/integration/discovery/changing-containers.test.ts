// 200 random changes of containers under load: no request fails, and none reaches the container of another owner.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { DockerApi, type FakeContainer } from "../../support/docker-api.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";
import { Random, seedOfRun } from "../../support/random.ts";

const SEED = seedOfRun();
const CHANGES = Number(process.env["SLUICE_TEST_CHANGES"] ?? 200);
/** How many changes follow at once. */
const BURSTS = Number(process.env["SLUICE_TEST_BURSTS"] ?? 0.5);

let gateway: Gateway;
let docker: DockerApi;
const origins: Bun.Server<undefined>[] = [];

beforeAll(async () => {
  docker = new DockerApi();
  gateway = await startGateway({ workers: 1 });
});
afterAll(async () => {
  await gateway?.stop();
  await docker?.stop();
  for (const origin of origins) await origin.stop(true);
});

const random = new Random(SEED);

/** A port that responds with the name of its owner. */
function originOf(owner: string): number {
  const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(owner) });
  origins.push(origin);
  return origin.port ?? 0;
}

const traefik = (name: string, rule: string) => ({
  "traefik.enable": "true",
  [`traefik.http.routers.${name}.rule`]: rule,
});
const sluice = (host: string, more: Record<string, string> = {}) => ({
  "sluice.enable": "true",
  "sluice.host": host,
  ...more,
});
const compose = (project: string, service: string) => ({
  "com.docker.compose.project": project,
  "com.docker.compose.service": service,
});

/** Owners, each with a host of its own. */
interface Owner {
  readonly host: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Whether it is a service of compose, which can be scaled. */
  readonly isComposed: boolean;
  names: string[];
}
const owners: Owner[] = [
  ...["plain", "pathed"].map((name) => ({
    host: `${name}.test`,
    labels: sluice(`${name}.test`, name === "pathed" ? { "sluice.path": "/" } : {}),
    isComposed: false,
    names: [],
  })),
  {
    host: "routed.test",
    labels: traefik("routed", "Host(`routed.test`)"),
    isComposed: false,
    names: [],
  },
  {
    host: "own.test",
    labels: { ...sluice("own.test"), ...compose("own", "web") },
    isComposed: true,
    names: [],
  },
  {
    host: "scaled.test",
    labels: { ...traefik("scaled", "Host(`scaled.test`)"), ...compose("scaled", "web") },
    isComposed: true,
    names: [],
  },
];

/** Containers that want what others have. Each arrives and leaves at any time, and is as old as it likes. */
const attacks: readonly ((host: string) => Readonly<Record<string, string>>)[] = [
  (host) => sluice(host),
  (host) => sluice(host, { "sluice.path": "/login" }),
  (host) => traefik("squatter", `Host(\`${host}\`)`),
  (host) => traefik(host.replace(".test", ""), `Host(\`free-${host}\`)`),
  (host) => ({
    ...traefik("first", `Host(\`${host}\`) && PathPrefix(\`/login\`)`),
    "traefik.http.routers.first.priority": "9999",
  }),
  (host) => owners.find((owner) => owner.host === host)?.labels ?? {},
];

let count = 0;
function started(owner: string, { labels }: Pick<Owner, "labels">, name: string): FakeContainer {
  count += 1;
  return {
    name,
    labels,
    ports: [originOf(owner)],
    id: new Bun.CryptoHasher("sha256").update(`${name} ${count}`).digest("hex"),
    created: 1_700_000_000 + random.between(0, 1000),
    image: `sha256:${random.between(0, 5)}`,
  };
}

function runOne(owner: Owner): void {
  const name = `${owner.host.split(".")[0]}-${++count}`;
  docker.run(started(owner.host, owner, name));
  owner.names.push(name);
}

const squatters: string[] = [];
/** What a failure prints: what became of which container. */
const steps: string[] = [];
const changes: Readonly<Record<string, () => void>> = {
  scale: () => {
    const owner = random.pick(owners.filter(({ isComposed }) => isComposed));
    if (owner.names.length > 1 && random.chance(0.5)) docker.end(owner.names.shift() ?? "");
    else if (owner.names.length < 4) runOne(owner);
  },
  rename: () => {
    const owner = random.pick(owners);
    const [name = "", ...others] = owner.names;
    const next = `renamed-${++count}`;
    steps.push(`${name} is ${next}`);
    docker.rename(name, next);
    owner.names = [...others, next];
  },
  recreate: () => {
    const owner = random.pick(owners);
    const [name = ""] = owner.names;
    steps.push(`${name} is recreated`);
    docker.end(name);
    docker.run(started(owner.host, owner, name));
  },
  arrive: () => {
    if (squatters.length > 5) docker.end(squatters.shift() ?? "");
    const labels = random.pick(attacks)(random.pick(owners).host);
    // Compose decides which containers are one service.
    const own = Object.entries(labels).filter(([key]) => !key.startsWith("com.docker."));
    const name = `squatter-${++count}`;
    steps.push(`${name} arrives with ${JSON.stringify(own)}`);
    docker.run(started("squatter", { labels: Object.fromEntries(own) }, name));
    squatters.push(name);
  },
  leave: () => docker.end(squatters.shift() ?? ""),
  shuffle: () => docker.shuffle(() => random.next()),
};

interface Seen {
  requests: number;
  readonly failed: string[];
}

/** One request at a time for each owner, until it is ended. */
async function load(seen: Seen, signal: AbortSignal): Promise<void> {
  await Promise.all(
    owners.map(async ({ host }) => {
      for (let at = 0; !signal.aborted; at++) {
        const path = at % 2 === 0 ? "/" : "/login";
        const response = await fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, {
          headers: { host },
        }).catch((error: unknown) => new Response(String(error), { status: 599 }));
        const text = await response.text();
        seen.requests += 1;
        if (response.status !== 200 || text !== host)
          seen.failed.push(`${host}${path}: ${response.status} ${text.slice(0, 80)}`);
        await Bun.sleep(5);
      }
    }),
  );
}

test(`${CHANGES} random changes: no request fails or reaches another's container`, async () => {
  console.log(`seed ${SEED}`);
  const discovery = { docker: { endpoint: docker.endpoint, labels: ["sluice", "traefik"] } };
  await gateway.ok("PATCH", "/api/v1/settings", { discovery });
  for (const owner of owners) runOne(owner);
  const isServed = async ({ host }: Owner) => {
    const url = `http://127.0.0.1:${gateway.httpPort}/`;
    return (await (await fetch(url, { headers: { host } })).text()) === host;
  };
  await eventually(async () => (await Promise.all(owners.map(isServed))).every(Boolean));
  const seen: Seen = { requests: 0, failed: [] };
  const counts: Record<string, number> = {};
  let session = new AbortController();
  let running = load(seen, session.signal);
  for (let at = 0; at < CHANGES; at++) {
    const isRestart = at % 40 === 39;
    const kind = isRestart ? "restart" : random.pick(Object.keys(changes));
    counts[kind] = (counts[kind] ?? 0) + 1;
    const before = seen.failed.length;
    if (isRestart) {
      // No request can be served while no gateway runs.
      session.abort();
      await running;
      await gateway.restart();
      session = new AbortController();
      running = load(seen, session.signal);
    } else changes[kind]?.();
    // Some changes are one burst, and others are seen one by one.
    await Bun.sleep(random.chance(BURSTS) ? 20 : 450);
    if (seen.failed.length > before)
      console.log(
        `change ${at} ${kind}: ${seen.failed[before]} and ${seen.failed.length - before}, after`,
        steps.slice(-10),
      );
  }
  session.abort();
  await running;
  console.log(`${seen.requests} requests, ${seen.failed.length} failed,`, counts);
  expect(seen.failed.slice(0, 5)).toEqual([]);
});

test("a container that is renamed and recreated while the gateway restarts keeps its host", async () => {
  const owner = owners[0] as Owner;
  const [name = ""] = owner.names;
  const squatter = `squatter-${++count}`;
  docker.rename(name, "renamed-before");
  docker.end("renamed-before");
  docker.run(started("squatter", { labels: sluice(owner.host) }, squatter));
  docker.run(started(owner.host, owner, "renamed-before"));
  owner.names = ["renamed-before"];
  await gateway.restart();
  const sitesOf = async () =>
    (await gateway.ok("GET", "/api/v1/discovery"))[0].sites as { from: string }[];
  await eventually(async () =>
    (await sitesOf()).some(({ from }) => from === "container renamed-before"),
  );
  const url = `http://127.0.0.1:${gateway.httpPort}/`;
  expect(await (await fetch(url, { headers: { host: owner.host } })).text()).toBe(owner.host);
});
