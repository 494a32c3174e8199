// Which addresses may use the management API, from settings and start flags, and which changes are rejected.
import { describe, expect, test } from "bun:test";
import {
  type AdminAccess,
  AdminNetworks,
  allNetworks,
  localAccess,
  privateNetworks,
} from "../../../src/control/admin-network.ts";
import { Draft } from "../../../src/control/draft.ts";
import { anonymous, local } from "../../../src/control/principal.ts";
import { emptyConfiguration } from "../../../src/store/first-configuration.ts";

const AT = "2026-01-01T00:00:00.000Z";
const empty = emptyConfiguration(AT);
const settingsWith = (admin_allowed_cidrs: string[]) => ({
  ...empty.settings,
  admin_allowed_cidrs,
});

const remote = (allowed: readonly string[] | null): AdminAccess => ({
  allowed,
  wantsRemote: true,
  heldBack: null,
});
const heldBack: AdminAccess = { allowed: null, wantsRemote: true, heldBack: "because" };
const networksOf = (access: AdminAccess, stored: string[]) =>
  new AdminNetworks(access, () => settingsWith(stored));

interface Row {
  readonly why: string;
  readonly access: AdminAccess;
  readonly stored: string[];
  readonly yes: readonly string[];
  readonly no?: readonly string[];
}

describe("an address may use the management API", () => {
  const office = "198.51.100.7";
  const rows: Row[] = [
    { why: "loopback needs nothing", access: localAccess, stored: [], yes: ["127.0.0.1", office] },
    {
      why: "a list holds on loopback, too",
      access: localAccess,
      stored: ["10.0.0.0/8"],
      yes: ["10.1.1.1"],
      no: ["127.0.0.1", "::1", office],
    },
    {
      why: "private networks",
      access: remote(privateNetworks),
      stored: [],
      yes: [
        ...["10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.255.255"],
        ...["127.0.0.1", "127.255.255.255", "::1", "fc00::1", "fdff::1", "::ffff:192.168.0.1"],
      ],
      no: [
        ...["9.255.255.255", "11.0.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255"],
        ...["192.169.0.0", "169.254.169.254", "100.64.0.1", "fe80::1%eth0", "2001:db8::1"],
        ...["::2", "::ffff:8.8.8.8", "::127.0.0.1", "fbff::1", "fe00::1", "", "localhost"],
      ],
    },
    {
      why: "what the settings name goes before what the start says",
      access: remote(["10.0.0.0/8"]),
      stored: [`${office}/32`],
      yes: [office, `::ffff:${office}`],
      no: ["10.0.0.1", "127.0.0.1"],
    },
    { why: "any", access: remote(allNetworks), stored: [], yes: [office, "2001:db8::1", "::1"] },
    {
      why: "nothing named at an address that others reach lets in this machine alone",
      access: remote(null),
      stored: [],
      yes: ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"],
      no: [office, "10.0.0.1"],
    },
    {
      why: "the networks of the start do not close a listener on loopback",
      access: { ...heldBack, allowed: ["10.0.0.0/8"] },
      stored: [],
      yes: ["127.0.0.1"],
    },
  ];
  test.each(rows)("$why", ({ access, stored, yes, no = [] }) => {
    const networks = networksOf(access, stored);
    for (const address of yes)
      expect([address, networks.isAllowed(address)]).toEqual([address, true]);
    for (const address of no)
      expect([address, networks.isAllowed(address)]).toEqual([address, false]);
  });
});

test.each([
  { access: localAccess, stored: [], state: "local", warnings: 0 },
  { access: localAccess, stored: [...allNetworks], state: "local", warnings: 0 },
  { access: remote(privateNetworks), stored: [], state: "restricted", warnings: 0 },
  { access: remote(allNetworks), stored: [], state: "any", warnings: 1 },
  { access: remote(allNetworks), stored: ["10.0.0.0/8"], state: "restricted", warnings: 0 },
  { access: remote(null), stored: ["::/0"], state: "any", warnings: 1 },
  { access: remote(null), stored: ["0.0.0.0/1", "128.0.0.0/1"], state: "any", warnings: 1 },
  { access: remote(null), stored: ["::ffff:0:0/96"], state: "any", warnings: 1 },
  { access: remote(null), stored: ["0.0.0.0/1"], state: "restricted", warnings: 0 },
  { access: heldBack, stored: [], state: "held_back", warnings: 1 },
] as const)("$stored at $access is $state", ({ access, stored, state, warnings }) => {
  const networks = networksOf(access, [...stored]);
  expect(networks.state()).toBe(state);
  expect(networks.warnings()).toHaveLength(warnings);
});

describe("a change of the restriction", () => {
  function changed(access: AdminAccess, from: string[], to: string[]) {
    const base = { ...empty, settings: settingsWith(from) };
    const draft = new Draft(base, () => AT);
    draft.putSingleton("settings", settingsWith(to));
    const networks = new AdminNetworks(access, () => base.settings);
    return (address: string | null, force = false) => {
      const by = address === null ? local : anonymous(address);
      networks.checkChange(draft, { by, force });
      return draft.warnings;
    };
  }

  test("that denies its own caller requires ?force=1", () => {
    const change = changed(localAccess, [], ["10.0.0.0/8"]);
    expect(() => change("127.0.0.1")).toThrow(
      "admin_allowed_cidrs: would lock out 127.0.0.1, the client of this request; ?force=1 makes",
    );
    expect(() => change("::ffff:127.0.0.1")).toThrow("would lock out");
    expect(change("127.0.0.1", true)).toEqual([]);
    expect(change("10.9.9.9")).toEqual([]);
    expect(change("::ffff:10.9.9.9")).toEqual([]);
    expect(change(null)).toEqual([]);
  });

  test("that falls back to the networks of the start flags requires ?force=1 as well", () => {
    const change = changed(remote(["192.168.0.0/16"]), ["10.0.0.0/8"], []);
    expect(() => change("10.0.0.1")).toThrow("would lock out 10.0.0.1");
    expect(change("192.168.1.1")).toEqual([]);
  });

  test("that removes all networks of a reachable listener is rejected for every caller, even with force", () => {
    const change = changed(remote(null), ["10.0.0.0/8"], []);
    for (const [address, force] of [
      ["10.0.0.1", false],
      ["127.0.0.1", true],
      [null, true],
    ] as const)
      expect(() => change(address, force)).toThrow("admin_allowed_cidrs: must hold a network");
    for (const access of [localAccess, heldBack, remote(privateNetworks)])
      expect(changed(access, ["10.0.0.0/8"], [])("10.0.0.1")).toEqual([]);
  });

  test("that allows all clients gives one warning", () => {
    const everybody = ["0.0.0.0/0", "::/0"];
    const texts = changed(remote(null), ["10.0.0.0/8"], everybody)("10.0.0.1");
    expect(texts).toEqual([expect.stringContaining("every address may use the management API")]);
    expect(changed(remote(null), ["0.0.0.0/0"], everybody)("10.0.0.1")).toEqual([]);
    expect(changed(localAccess, ["10.0.0.0/8"], everybody)("10.0.0.1")).toEqual([]);
  });

  test("is none when the same networks already apply", () => {
    const change = changed(remote(["10.0.0.0/8"]), [], ["10.0.0.0/8"]);
    expect(change("127.0.0.1")).toEqual([]);
  });
});
