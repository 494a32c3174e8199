// ACME over two nodes with one log: states of orders and challenge responses of one node reach the other.
import { expect, test } from "bun:test";
import { ChallengeBoard, type Proofs } from "../../../src/acme/challenge-board.ts";
import { FleetAcmeStore, readShared, shareOver } from "../../../src/acme/fleet-acme.ts";
import type { NodeState } from "../../../src/control/fleet-view.ts";
import { SecretBox } from "../../../src/crypto/secret-box.ts";
import { createLog } from "../../../src/log.ts";
import { AcmeStateTable } from "../../../src/store/acme.ts";
import { eventually } from "../../support/poll.ts";
import { type TestNode, twoNodes } from "./node.ts";

const log = createLog({ level: "error", format: "json", sink: () => {} });
const box = new SecretBox(new Uint8Array(32));
const PROOFS: Proofs = {
  http: [{ token: "token", answer: "token.thumbprint" }],
  tls: [{ name: "a.example", cert: "CERT", key: "PRIVATE KEY" }],
};

const statesOf = ({ store }: TestNode) =>
  Object.fromEntries(store.with((context) => new AcmeStateTable(context)).load());

test("the newest state of an order is on all nodes, also when the database was away", async () => {
  using fleet = twoNodes();
  const [first, second] = fleet.nodes;
  const store = first.store.with((context) => new AcmeStateTable(context));
  const states = new FleetAcmeStore({ store, changes: first.changes, log, retryMs: 10 });
  const behind: boolean[] = [];
  first.changes.onFact((fact) => void behind.push(states.isBehind(fact)));
  fleet.source.fault = "unreachable";
  await states.put("c", { attempts: 1 }, false);
  expect(fleet.source.entries).toHaveLength(0);
  await eventually(() => fleet.source.entries.length === 1);
  await Promise.all([2, 3, 4].map((attempts) => states.put("c", { attempts }, false)));
  await second.changes.follow();
  expect(statesOf(second)).toEqual({ c: { attempts: 4 } });
  expect(statesOf(first)).toEqual({ c: { attempts: 4 } });
  // What it wrote itself changes nothing in its memory; what another node wrote does.
  expect(new Set(behind)).toEqual(new Set([true]));
  await second.changes.record(() => ({
    value: null,
    facts: [{ kind: "acme_state", certificate_id: "c", document: { attempts: 5 } }],
  }));
  await first.changes.follow();
  expect(behind.at(-1)).toBe(false);
});

test("what a node wrote for an order after it lost the work is void", async () => {
  using fleet = twoNodes();
  const [first, second] = fleet.nodes;
  const store = first.store.with((context) => new AcmeStateTable(context));
  const states = new FleetAcmeStore({ store, changes: first.changes, log, retryMs: 10 });
  const term = { holder: "first", epoch: 1 };
  fleet.source.term = term;
  first.term = term;
  await states.put("c", { attempts: 1 }, true);
  // The other one leads, and this one was stopped meanwhile.
  fleet.source.term = { holder: "second", epoch: 2 };
  first.term = null;
  await states.put("c", { attempts: 2 }, true);
  expect(statesOf(first)).toEqual({ c: { attempts: 1 } });
  // A user's request is not of that work.
  await states.put("d", { is_asked_for: true }, false);
  states.dropUnsent();
  await eventually(() => fleet.source.entries.length === 2);
  await second.changes.follow();
  const stored = { c: { attempts: 1 }, d: { is_asked_for: true } };
  expect([statesOf(first), statesOf(second)]).toEqual([stored, stored]);
});

/** What the workers of the second node serve. */
function boards({ nodes }: ReturnType<typeof twoNodes>, missing: { state: NodeState }[] = []) {
  const [first, second] = nodes;
  const shown: { now: Proofs } = { now: { http: [], tls: [] } };
  const other = new ChallengeBoard(
    async ({ http, tls }) => {
      // Workers take their time.
      await Bun.sleep(20);
      shown.now = { http, tls };
    },
    () => {},
  );
  second.changes.onFact((fact) => {
    if (fact.kind !== "acme_challenges") return;
    return other.observe(fact.node_id, readShared(fact.sealed, box));
  });
  const view = {
    id: "n1",
    reachStored: async () => {
      await second.changes.follow();
      const named = missing.map(({ state }) => ({ name: "n3", state }));
      return { live: 2, nodes: 2 + named.length, missing: named };
    },
  };
  const board = new ChallengeBoard(
    async () => {},
    () => {},
    shareOver(view, { changes: first.changes, box }),
  );
  return { board, shown };
}

test("the CA is notified after all nodes serve the responses, and they are removed from all", async () => {
  using fleet = twoNodes();
  const { board, shown } = boards(fleet);
  const takeDown = await board.putUp(PROOFS);
  expect(shown.now).toEqual(PROOFS);
  const [entry] = fleet.source.entries;
  const text = Buffer.from(Bun.zstdDecompressSync(entry!.body)).toString();
  expect(text).toContain("acme_challenges");
  expect(text).not.toContain("PRIVATE KEY");
  takeDown();
  await eventually(() => fleet.source.entries.length === 2);
  await fleet.nodes[1].changes.follow();
  expect(shown.now).toEqual({ http: [], tls: [] });
});

test("an order fails while a node does not serve the responses, unless it is away", async () => {
  using fleet = twoNodes();
  const late = boards(fleet, [{ state: "lagging" }]);
  const failure = await late.board.putUp(PROOFS).catch((error: Error) => error.message);
  expect(failure).toBe("nodes that do not serve the challenge response: n3");
  await eventually(() => fleet.source.entries.length === 2);
  await fleet.nodes[1].changes.follow();
  expect(late.shown.now).toEqual({ http: [], tls: [] });
  await boards(fleet, [{ state: "away" }]).board.putUp(PROOFS);
});
