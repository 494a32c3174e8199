// Attention items: grouped by cause, each with the action for all of its objects.
import { expect, test } from "bun:test";
import {
  type AttentionFacts,
  attentionGroups,
} from "../../../src/ui/pages/dashboard/attention-groups.ts";

const NOW = Date.parse("2026-05-01T00:00:00Z");
const none: AttentionFacts = {
  warnings: [],
  unbound: [],
  certificates: [],
  accounts: [],
  targets: [],
  services: new Map(),
  now: NOW,
};
const certificate = (id: string, fields: object) =>
  ({
    id,
    name: id,
    enabled: true,
    source: "acme",
    status: "failed",
    not_after: null,
    last_error: null,
    ...fields,
  }) as unknown as AttentionFacts["certificates"][number];
const target = (service_id: string, port: number, last_error: string) =>
  ({
    service_id,
    host: "10.0.0.1",
    port,
    health: { state: "unhealthy", since: "2026-04-30T00:00:00Z", last_error },
  }) as unknown as AttentionFacts["targets"][number];

const titles = (facts: Partial<AttentionFacts>) =>
  attentionGroups({ ...none, ...facts }).map(({ title }) => title);

test("certificates that wait for the same terms of service are one entry with one action", () => {
  const last_error = 'ACME account "le" requires terms_agreed';
  const accounts = [{ id: "a", name: "le" }] as unknown as AttentionFacts["accounts"];
  const certificates = Array.from({ length: 10 }, (_, index) =>
    certificate(`c${index}`, { last_error }),
  );
  const [group, ...others] = attentionGroups({ ...none, accounts, certificates });
  expect(others).toEqual([]);
  expect(group?.title).toBe("10 certificates wait for the terms of service of ACME account le");
  expect(group?.action).toMatchObject({ kind: "agree", ids: certificates.map(({ id }) => id) });
});

test("failed certificates are grouped by their advice, and can be retried together", () => {
  const groups = attentionGroups({
    ...none,
    certificates: [
      certificate("a", { last_error: "the CA could not resolve the name: a.example" }),
      certificate("b", { last_error: "the CA could not resolve the name: b.example" }),
      certificate("c", { last_error: "there is no ACME account: create one" }),
      certificate("d", { enabled: false, last_error: "the CA could not resolve the name" }),
    ],
  });
  expect(groups.map(({ title, action }) => [title, action?.kind])).toEqual([
    ["2 certificates could not be issued", "retry"],
    ["1 certificate waits for an ACME account", "link"],
  ]);
});

test("a certificate needs attention three weeks before it expires", () => {
  const upload = { source: "upload", status: "valid" };
  const days = (count: number) => new Date(NOW + count * 86_400_000).toISOString();
  expect(
    titles({
      certificates: [
        certificate("soon", { ...upload, not_after: days(20) }),
        certificate("later", { ...upload, not_after: days(22) }),
      ],
    }),
  ).toEqual(["1 certificate expires soon or has expired"]);
});

test("targets are grouped by their error, whatever their address", () => {
  const targets = [
    target("s", 1, "10.0.0.1:1 refused the connection"),
    target("s", 2, "10.0.0.1:2 refused the connection"),
    target("t", 3, "status 503"),
    target("s", 4, "status 503"),
  ];
  const services = new Map([
    ["s", "web"],
    ["t", "api"],
  ]);
  expect(titles({ targets, services })).toEqual([
    "2 targets of service web unhealthy",
    "2 targets of 2 services unhealthy",
  ]);
});

test("ports that are not bound are one entry each for listeners and stream routes, first of all", () => {
  const port = (object: "listener" | "stream_route", name: string, number: number) =>
    ({ object, id: name, name, transport: "tcp", port: number, reason: "taken" }) as const;
  const groups = attentionGroups({
    ...none,
    warnings: ['listener "web" does not listen on port 80: taken; stream route "db" does not …'],
    unbound: [
      port("listener", "web", 80),
      port("stream_route", "db", 1),
      port("stream_route", "db", 2),
    ],
    targets: [target("s", 1, "refused")],
  });
  expect(groups.map(({ title, tone }) => [tone, title])).toEqual([
    ["bad", "1 listener does not listen on 1 port"],
    ["bad", "1 stream route does not listen on 2 ports"],
    ["bad", "1 target of service s unhealthy"],
  ]);
  expect(groups[0]?.items).toEqual([
    { label: "web", href: "/ui/listeners/web", detail: "port 80: taken", at: null },
  ]);
});

test("warnings of one kind are one entry, those of certificates appear once, traffic comes first", () => {
  const hidden = (name: string) =>
    `route "${name}" matches no request: route "all" has a higher priority and matches all requests for its hosts and paths`;
  const groups = attentionGroups({
    ...none,
    warnings: [
      'certificate "x" expired on 2026-04-30',
      hidden("a"),
      hidden("b"),
      "memory is short",
    ],
    targets: [target("s", 1, "refused")],
    services: new Map([["s", "web"]]),
  });
  expect(groups.map(({ title, tone }) => [tone, title])).toEqual([
    ["bad", "1 target of service web unhealthy"],
    ["warn", "2 routes: matches no request"],
    ["warn", "memory is short"],
  ]);
  expect(groups[1]?.items.map(({ href }) => href)).toEqual(["/ui/routes/a", "/ui/routes/b"]);
});
