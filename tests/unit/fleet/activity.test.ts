// What nodes tell each other beside changes: audit entries, failed sign-ins and last uses arrive once, whatever gets lost.
import { expect, test } from "bun:test";
import { AuditLog } from "../../../src/control/audit.ts";
import { LoginThrottle } from "../../../src/auth/throttle.ts";
import { FleetActivity } from "../../../src/control/fleet-activity.ts";
import { LastUse } from "../../../src/control/last-use.ts";
import { CredentialUseTable } from "../../../src/store/credentials.ts";
import { TokenUse } from "../../../src/auth/token-use.ts";
import { TokenTable } from "../../../src/store/tokens.ts";
import { createLog } from "../../../src/log.ts";
import { eventually } from "../../support/poll.ts";
import { MemorySource } from "./memory-source.ts";
import { TestNode } from "./node.ts";

const NOW = Date.parse("2026-03-01T12:00:00.000Z");
const clock = { time: NOW, now: () => clock.time };

interface Peer extends Disposable {
  readonly node: TestNode;
  readonly audit: AuditLog;
  readonly throttle: LoginThrottle;
  readonly tokenUse: LastUse;
  readonly credentialUse: LastUse;
  readonly activity: FleetActivity;
  readonly lines: string[];
  actions(): string[];
}

function peerOf(name: string, source: MemorySource): Peer {
  const node = new TestNode(name, source, 0);
  const { store, changes } = node;
  const lines: string[] = [];
  const log = createLog({ level: "warn", format: "json", sink: (line) => lines.push(line) });
  const audit = new AuditLog({ store: store.audit, changes, clock, log });
  const throttle = new LoginThrottle(clock, 100);
  const tokenUse = new TokenUse({ store: store.with((each) => new TokenTable(each)), clock, log });
  const credentialUse = new LastUse({
    store: store.with((each) => new CredentialUseTable(each)),
    what: "credentials",
    clock,
    log,
  });
  const parts = { changes, audit, throttle, tokenUse, credentialUse, log };
  const activity = new FleetActivity({ ...parts, node: store.instanceId, onBeat: () => {} });
  return {
    ...parts,
    node,
    activity,
    lines,
    actions: () => [...audit.list({}).pages].flat().map(({ action }) => action),
    [Symbol.dispose]: () => node.close(),
  };
}

const record = ({ audit }: Peer, action: string) =>
  audit.record({
    actor: "root",
    method: "local",
    address: "",
    action,
    kind: "session",
    object_id: null,
    object_name: null,
    result: "ok",
    revision: null,
    detail: null,
  });

const isBlocked = ({ throttle }: Peer, address: string, account: string) => {
  try {
    throttle.admit(address, account);
    return false;
  } catch {
    return true;
  }
};

test("an audit entry is on all nodes once, and subscribers of each get it once", async () => {
  const source = new MemorySource();
  using one = peerOf("n1", source);
  using other = peerOf("n2", source);
  const heard: string[] = [];
  other.audit.onEntry(({ action }) => heard.push(action));
  record(one, "rename");
  record(other, "shutdown");
  await one.activity.stop();
  await other.activity.stop();
  await one.node.changes.follow();
  expect(other.actions().sort()).toEqual(["rename", "shutdown"]);
  expect(one.actions().sort()).toEqual(["rename", "shutdown"]);
  expect(heard.sort()).toEqual(["rename", "shutdown"]);
  expect(source.entries).toHaveLength(2);
});

test("a batch whose answer was lost is sent again, and counts once", async () => {
  const source = new MemorySource();
  using one = peerOf("n1", source);
  using other = peerOf("n2", source);
  for (let index = 0; index < 5; index++) one.throttle.begin("10.0.0.1", "root").failed();
  record(one, "rename");
  source.fault = "answer";
  const { idAt } = source;
  source.idAt = async () => {
    throw new Error("the database is away");
  };
  await one.activity.stop();
  source.idAt = idAt;
  await one.node.changes.follow();
  await one.activity.stop();
  expect(source.entries).toHaveLength(2);
  await other.node.changes.follow();
  await one.node.changes.follow();
  expect(other.actions()).toEqual(["rename"]);
  expect(one.actions()).toEqual(["rename"]);
  for (const peer of [one, other]) {
    for (let index = 0; index < 4; index++) peer.throttle.begin("10.0.0.2", "root").failed();
    expect(isBlocked(peer, "10.0.0.3", "root")).toBe(false);
    peer.throttle.begin("10.0.0.2", "root").failed();
    expect(isBlocked(peer, "10.0.0.3", "root")).toBe(true);
  }
});

test("failures on two nodes block on both; withdrawn attempts stay on their node", async () => {
  const source = new MemorySource();
  using one = peerOf("n1", source);
  using other = peerOf("n2", source);
  for (let index = 0; index < 5; index++) {
    one.throttle.begin(`10.0.1.${index}`, "root").failed();
    // Later than those of the other node, which arrive after it.
    clock.time += 10;
    other.throttle.begin(`10.0.2.${index}`, "root").failed();
    one.throttle.begin("10.0.3.1", "anna").withdraw();
    one.throttle.begin("10.0.3.2", "anna");
  }
  for (const peer of [one, other]) expect(isBlocked(peer, "10.0.9.9", "root")).toBe(false);
  await one.activity.stop();
  await other.activity.stop();
  await one.node.changes.follow();
  for (const peer of [one, other]) expect(isBlocked(peer, "10.0.9.9", "root")).toBe(true);
  expect(other.throttle.size).toBe(one.throttle.size - 2);
});

test("while the database is away entries wait, the oldest are dropped, and one line says how many", async () => {
  const source = new MemorySource();
  using one = peerOf("n1", source);
  using other = peerOf("n2", source);
  source.fault = "unreachable";
  for (let index = 0; index < 5003; index++) record(one, `a${index}`);
  await one.activity.stop();
  expect(source.entries).toHaveLength(0);
  for (let batch = 0; batch < 26; batch++) await one.activity.stop();
  await other.node.changes.follow();
  const actions = other.actions();
  expect(actions).toHaveLength(5000);
  expect([actions[0], actions.at(-1)]).toEqual(["a3", "a5002"]);
  const dropped = one.lines.filter((line) => line.includes("lack entries"));
  expect(dropped).toHaveLength(1);
  expect(JSON.parse(dropped[0] ?? "{}").entries).toBe(3);
});

test("the newest last use wins on all nodes, also after a start, and a batch has a limit", async () => {
  const source = new MemorySource();
  using one = peerOf("n1", source);
  using other = peerOf("n2", source);
  clock.time = NOW;
  for (let index = 0; index < 1500; index++) one.credentialUse.touch(`c${index}`);
  one.tokenUse.touch("t");
  clock.time = NOW + 1000;
  other.tokenUse.touch("t");
  await one.activity.stop();
  await other.node.changes.follow();
  expect(other.credentialUse.lastUsedAt("c999")).toBe("2026-03-01T12:00:00.000Z");
  expect(other.credentialUse.lastUsedAt("c1000")).toBeNull();
  expect(other.tokenUse.lastUsedAt("t")).toBe("2026-03-01T12:00:01.000Z");
  await one.activity.stop();
  await other.activity.stop();
  await one.node.changes.follow();
  expect(other.credentialUse.lastUsedAt("c1499")).toBe("2026-03-01T12:00:00.000Z");
  expect(one.tokenUse.lastUsedAt("t")).toBe("2026-03-01T12:00:01.000Z");
  const stored = other.node.store.with((each) => new CredentialUseTable(each)).load();
  expect(stored).toHaveLength(1500);
  // Nothing new: nothing is sent.
  const before = source.entries.length;
  await one.activity.stop();
  expect(source.entries).toHaveLength(before);
});

test("a batch leaves by itself", async () => {
  const source = new MemorySource();
  using one = peerOf("n1", source);
  one.activity.start();
  record(one, "rename");
  await eventually(() => source.entries.length === 1);
  await one.activity.stop();
});
