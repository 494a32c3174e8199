// Facts in a real database: stored with a change or not at all, and the same when they are written again.
import { expect, test } from "bun:test";
import { forgotten } from "../../../src/fleet/whole.ts";
import type { Fact } from "../../../src/model/fact.ts";
import { AcmeStateTable } from "../../../src/store/acme.ts";
import { LocalCaRow } from "../../../src/store/local-ca.ts";
import { SessionTable } from "../../../src/store/sessions.ts";
import type { Store } from "../../../src/store/store.ts";
import { TokenTable } from "../../../src/store/tokens.ts";
import { TotpTable } from "../../../src/store/totp.ts";
import { changeOf, commitOf, firstCommit, openStore, temporaryDirectory } from "./fixture.ts";

const created_at = "2026-01-01T00:00:00.000Z";
const sealed = "sealed:1:00000000:AAAA";
const record = {
  user_id: "u1",
  sealed_key: sealed,
  confirmed: true,
  last_step: 3,
  recovery_hashes: ["x"],
};
const facts: readonly Fact[] = [
  { kind: "sessions_ended", ids: ["s1", "unknown"] },
  { kind: "second_factor", user_id: "u1", record },
  { kind: "second_factor", user_id: "u2", record: null },
  { kind: "admin_token", token: { token_hash: "hash", created_at } },
  { kind: "acme_state", certificate_id: "c1", document: { attempts: 2 } },
  { kind: "local_ca", root: { certificate: "PEM", sealed_key: sealed, constraints: null } },
];
/** Violates a rule of its table. */
const invalid = {
  kind: "second_factor",
  user_id: "u3",
  record: { ...record, user_id: "u3", sealed_key: null },
} as unknown as Fact;

/** Sessions s1 and s2, and a second factor of u2. */
function openWithRows(path: string) {
  const opened = openStore(path);
  opened.store.commit(firstCommit);
  const sessions = opened.store.with((context) => new SessionTable(context));
  const session = {
    user_id: "u1",
    method: "password",
    created_at,
    expires_at: created_at,
  } as const;
  for (const id of ["s1", "s2"])
    sessions.insert({ ...session, id, token_hash: id, address: "", user_agent: "" });
  opened.store.with((context) => new TotpTable(context)).put({ ...record, user_id: "u2" });
  return opened;
}

const stateOf = (store: Store) =>
  store.with((context) => ({
    sessions: new SessionTable(context).load().map(({ id }) => id),
    factors: new TotpTable(context).all(),
    token: new TokenTable(context).loadAdminToken(),
    acme: [...new AcmeStateTable(context).load()],
    root: new LocalCaRow(context).load(),
  }));

const before = {
  sessions: ["s1", "s2"],
  factors: [{ ...record, user_id: "u2" }],
  token: null,
  acme: [],
  root: null,
};
const after = {
  sessions: ["s2"],
  factors: [record],
  token: { token_hash: "hash", created_at },
  acme: [["c1", { attempts: 2 }]],
  root: { certificate: "PEM", sealed_key: sealed, constraints: null },
};

test("are stored with the change", () => {
  using directory = temporaryDirectory();
  using opened = openWithRows(directory.path);
  expect(stateOf(opened.store)).toEqual(before as never);
  opened.store.commit({ ...commitOf(2, changeOf({})), facts });
  expect(stateOf(opened.store)).toEqual(after as never);
});

test("are stored without a change, and a second time without a difference", () => {
  using directory = temporaryDirectory();
  using opened = openWithRows(directory.path);
  for (let time = 0; time < 2; time++) {
    opened.store.record(facts);
    expect(stateOf(opened.store)).toEqual(after as never);
  }
  expect(opened.store.load().revision).toBe(1);
});

test("are not stored when one of them or the change cannot be", () => {
  using directory = temporaryDirectory();
  using opened = openWithRows(directory.path);
  const all = [...facts, invalid];
  const words = "nothing was changed";
  expect(() => opened.store.record(all)).toThrow(words);
  expect(() => opened.store.commit({ ...commitOf(2, changeOf({})), facts: all })).toThrow(words);
  expect(stateOf(opened.store)).toEqual(before as never);
  expect(opened.store.load().revision).toBe(1);
});

test("claims of discovery are rows of their source, in what a node stores, and released one by one", () => {
  using dir = temporaryDirectory();
  using opened = openWithRows(dir.path);
  const claim = { kind: "host", name: "a.test", holder: "container a", content: "" } as const;
  const other = { ...claim, name: "b.test", gone_at: created_at } as const;
  const put: Fact = {
    kind: "discovery_claims",
    source: "docker@one",
    claims: [{ ...claim, gone_at: null }, other],
    released: [],
  };
  opened.store.record([put, { ...put, source: "docker@two", claims: [other] }]);
  opened.store.record([put]);
  const stored = () => opened.store.facts().filter(({ kind }) => kind === "discovery_claims");
  expect(stored()).toEqual([put, { ...put, source: "docker@two", claims: [other] }]);
  const next: Fact[] = [{ ...put, claims: [other] }];
  const gone = forgotten(stored(), next);
  expect(gone).toEqual([
    { ...put, claims: [], released: [{ kind: "host", name: "a.test" }] },
    {
      ...put,
      source: "docker@two",
      claims: [],
      released: [{ kind: "host", name: "b.test" }],
    },
  ]);
  opened.store.record(gone);
  expect(stored()).toEqual(next);
});
