// Sessions: found by their cookie, stored hashed, expired after seven days; on a real database and a simulated clock.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type Session, Sessions, type SignIn } from "../../../src/auth/sessions.ts";
import { compileStored } from "../../../src/control/stored.ts";
import { createLog } from "../../../src/log.ts";
import type { Fact } from "../../../src/model/fact.ts";
import { emptyConfiguration } from "../../../src/store/first-configuration.ts";
import { SessionTable } from "../../../src/store/sessions.ts";
import { openStore, temporaryDirectory } from "../store/fixture.ts";
import { at, changesOf, context, recorded } from "../control/fixture.ts";

const visit = {
  method: "password",
  address: "192.0.2.1",
  userAgent: "test/1",
  isSecure: false,
} as const;
const DAY = 86_400_000;

function scene(dataDir: string) {
  const opened = openStore(dataDir);
  const clock = { time: Date.parse("2026-01-01T00:00:00Z"), now: () => clock.time };
  const logged: string[] = [];
  const log = createLog({ level: "info", format: "json", sink: (line) => logged.push(line) });
  const table = opened.store.with((context) => new SessionTable(context));
  if (opened.store.isEmpty())
    opened.store.begin(emptyConfiguration(at), { at, actor: "", summary: "" });
  /** As after a start. `record`: writes facts. */
  const open = (record = (facts: readonly Fact[]) => opened.store.record(facts)) => {
    const current = compileStored(opened.store.load(), context);
    const store = { commit() {}, record };
    const changes = changesOf({ store, clock, log, current });
    const sessions = new Sessions({ store: table, changes, clock, log });
    const begin = (userId: string, signIn: SignIn = visit) =>
      recorded(changes, () => sessions.create(userId, signIn));
    return Object.assign(sessions, { begin });
  };
  return {
    store: opened.store,
    table,
    clock,
    logged,
    open,
    [Symbol.dispose]: () => opened[Symbol.dispose](),
  };
}

describe("a session", () => {
  test("is found by its cookie, of which only the hash is stored", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    const sessions = it.open();
    const { cookie, session } = sessions.begin("u1");
    expect(cookie).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(session).toEqual({
      id: expect.any(String),
      user_id: "u1",
      method: "password",
      address: "192.0.2.1",
      user_agent: "test/1",
      created_at: "2026-01-01T00:00:00.000Z",
      expires_at: "2026-01-08T00:00:00.000Z",
    });
    expect(sessions.find(cookie)).toEqual(session);
    expect(sessions.find(`${cookie}x`)).toBeNull();
    expect(sessions.find(session.id)).toBeNull();
    const stored = new Database(join(directory.path, "sluice.db"), { readonly: true })
      .query("SELECT * FROM sessions")
      .all();
    const hash = new Bun.CryptoHasher("sha256").update(cookie).digest("hex");
    expect(stored).toEqual([{ ...session, token_hash: hash }]);
    expect(JSON.stringify(stored)).not.toContain(cookie);
  });

  test("never has the cookie of another session", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    const sessions = it.open();
    const cookies = Array.from({ length: 50 }, () => sessions.begin("u1").cookie);
    expect(new Set(cookies).size).toBe(50);
  });

  test("survives a restart and expires seven days after sign-in, used or not", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    const { cookie } = it.open().begin("u1");
    it.clock.time += 7 * DAY - 1;
    const again = it.open();
    expect(again.find(cookie)?.user_id).toBe("u1");
    it.clock.time += 1;
    expect(again.find(cookie)).toBeNull();
    expect(again.list()).toEqual([]);
    expect(it.table.load()).toHaveLength(1);
    again.prune();
    expect(it.table.load()).toEqual([]);
  });

  test("that has expired is deleted at the start", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    it.open().begin("u1");
    it.clock.time += 7 * DAY;
    it.open();
    expect(it.table.load()).toEqual([]);
  });

  test("stores the User-Agent truncated and without control characters", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    const userAgent = `a\r\nb\u001b[31m${"x".repeat(1000)}`;
    const { session } = it.open().begin("u1", { ...visit, userAgent });
    expect(session.user_agent).toHaveLength(256);
    expect(session.user_agent).toStartWith("a  b [31mx");
  });
});

describe("the end of a session", () => {
  test("is notified in the same turn, and the cookie is invalid from then on", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    const sessions = it.open();
    const { cookie, session } = sessions.begin("u1");
    const ended: Session[] = [];
    sessions.onEnd((one) => {
      expect(sessions.find(cookie)).toBeNull();
      ended.push(one);
    });
    expect(sessions.end(session.id)).toBe(true);
    expect(ended).toEqual([session]);
    expect(sessions.end(session.id)).toBe(false);
    expect(it.open().find(cookie)).toBeNull();
  });

  test("for all but one of a user ends exactly those", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    const sessions = it.open();
    const [first, second, third] = [1, 2, 3].map(() => sessions.begin("u1"));
    const other = sessions.begin("u2");
    expect(sessions.endOfUser("u1", second!.session.id)).toBe(2);
    const found = [first!, second!, third!, other].map(({ cookie }) => sessions.find(cookie));
    expect(found.map((session) => session !== null)).toEqual([false, true, false, true]);
    expect(sessions.endOfUser("u1")).toBe(1);
    expect(sessions.list().map(({ user_id }) => user_id)).toEqual(["u2"]);
  });

  test("comes to the oldest when one user has a hundred, so that memory stays bounded", () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    const sessions = it.open();
    const first = sessions.begin("u1");
    for (let index = 0; index < 100; index++) sessions.begin("u1");
    expect(sessions.list("u1")).toHaveLength(100);
    expect(sessions.find(first.cookie)).toBeNull();
  });

  test("holds when the database cannot be written, and is written later", async () => {
    using directory = temporaryDirectory();
    using it = scene(directory.path);
    let isBroken = true;
    const refuse = (facts: readonly Fact[]) => {
      if (isBroken && facts[0]?.kind === "sessions_ended") throw new Error("disk full");
      it.store.record(facts);
    };
    const sessions = it.open(refuse);
    const { cookie, session } = sessions.begin("u1");
    expect(sessions.end(session.id)).toBe(true);
    expect(sessions.find(cookie)).toBeNull();
    expect(it.table.load()).toHaveLength(1);
    await Promise.resolve();
    expect(it.logged.join()).toContain("ended sessions could not be deleted");
    // A start before it was written does not bring it back, and writes it when that works.
    expect(it.open(refuse).find(cookie)).toBeNull();
    isBroken = false;
    sessions.prune();
    expect(it.table.load()).toEqual([]);
    expect(it.table.ended()).toEqual([]);
  });
});
