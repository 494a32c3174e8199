// Where the management API listens: rejected at the first start, restricted to loopback when an existing configuration is served.
import { describe, expect, test } from "bun:test";
import { expandNetworks } from "../../../src/cli/admin-networks.ts";
import { type Known, placeManagement } from "../../../src/cli/management-access.ts";
import { createServe, type ServeOptions } from "../../../src/cli/serve.ts";
import { StartError } from "../../../src/cli/start-error.ts";
import { privateNetworks } from "../../../src/control/admin-network.ts";

/** The options that `serve` parses from flags and variables. */
async function optionsOf(words: readonly string[], env: Record<string, string> = {}) {
  let options: ServeOptions | null = null;
  const serve = createServe((given) => {
    options = given;
    return Promise.resolve(0);
  });
  await serve.run(words, { env, print: () => undefined });
  return options as unknown as ServeOptions;
}

describe("--admin-allow", () => {
  test.each([
    { words: [], networks: null },
    { words: ["--admin-allow", "10.0.0.0/8"], networks: ["10.0.0.0/8"] },
    { words: ["--admin-allow", "10.0.0.0/8, ::1"], networks: ["10.0.0.0/8", "::1"] },
    {
      words: ["--admin-allow", "192.0.2.7", "--admin-allow=2001:db8::/32"],
      networks: ["192.0.2.7", "2001:db8::/32"],
    },
    { words: ["--admin-allow", "private"], networks: [...privateNetworks] },
    {
      words: ["--admin-allow", "private,10.0.0.0/8,192.0.2.0/24"],
      networks: [...privateNetworks, "192.0.2.0/24"],
    },
    { words: ["--admin-allow", "any"], networks: ["0.0.0.0/0", "::/0"] },
  ])("$words", async ({ words, networks }) => {
    expect((await optionsOf(words)).adminAllow).toEqual(networks);
    const value = words.filter((word) => !word.startsWith("--")).join(",");
    if (!words.some((word) => word.includes("=")))
      expect((await optionsOf([], { SLUICE_ADMIN_ALLOW: value })).adminAllow).toEqual(networks);
  });

  test.each([
    ["", '--admin-allow: "" must be an IP address or a network'],
    ["10.0.0.0/33", '--admin-allow: "10.0.0.0/33" must be'],
    ["10.0.0.0/8,", '--admin-allow: "" must be'],
    ["lan", '--admin-allow: "lan" must be an IP address or a network such as'],
    ["PRIVATE", '"PRIVATE" must be'],
    ["any,10.0.0.0/8", "--admin-allow: any must stand alone"],
    ["private,any", "--admin-allow: any must stand alone"],
    ["010.0.0.1", '"010.0.0.1" must be'],
  ])("%j is rejected: %s", async (value, says) => {
    await expect(optionsOf(["--admin-allow", value])).rejects.toThrow(says);
  });

  test("other commands can parse its value and report what is not a network", () => {
    expect(expandNetworks(["private", "x"])).toEqual([...privateNetworks, "x"]);
    expect(expandNetworks([])).toEqual([]);
  });
});

const fresh: Known = { isNew: true, users: 0, networks: [] };
const served: Known = { isNew: false, users: 0, networks: [] };
const place = async (words: readonly string[], known: Known) =>
  placeManagement(await optionsOf(words), known);
const ALLOW = ["--admin-allow", "private"];
const OPEN = "--allow-unauthenticated-remote";

describe("a loopback address needs no restriction", () => {
  test.each(["127.0.0.1:1", "[::1]:1", "localhost:1", "127.8.8.8:1", "[::ffff:127.0.0.1]:1"])(
    "%s",
    async (admin) => {
      for (const known of [fresh, served]) {
        const { hostname, access } = await place(["--admin", admin], known);
        expect([hostname, access.wantsRemote, access.heldBack]).toEqual([
          admin.replace(/^\[?(.*?)\]?:1$/, "$1"),
          false,
          null,
        ]);
      }
    },
  );
});

describe("any other address", () => {
  const addresses = ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[fd00::1]:1", "gateway.lan:1"];

  test.each(addresses)("%s is rejected at the first start, with what to do", async (admin) => {
    const started = (...words: string[]) => place(["--admin", admin, ...words], fresh);
    for (const words of [[], [OPEN]]) {
      const error = await started(...words).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(StartError);
      const { message } = error as StartError;
      for (const word of [admin, "--admin-allow", "CIDR[,CIDR]", "private", "RFC 1918", "any"])
        expect(message).toContain(word);
      expect(message.includes(OPEN)).toBe(words.length === 0);
    }
    await expect(started(...ALLOW)).rejects.toThrow(OPEN);
    expect((await started(...ALLOW, OPEN)).access.heldBack).toBeNull();
  });

  test.each(addresses)(
    "%s is replaced by loopback when an existing configuration is served",
    async (admin) => {
      const loopback = admin.startsWith("[") ? "::1" : "127.0.0.1";
      const started = (known: Partial<Known>, ...words: string[]) =>
        place(["--admin", admin, ...words], { ...served, ...known });
      const without = await started({ users: 1 });
      expect(without.hostname).toBe(loopback);
      expect(without.access.heldBack).toContain("--admin-allow");
      expect(without.access.heldBack).not.toContain(OPEN);
      const nobody = await started({}, ...ALLOW);
      expect([nobody.hostname, nobody.access.heldBack?.includes(OPEN)]).toEqual([loopback, true]);
      for (const good of [
        await started({ users: 1 }, ...ALLOW),
        await started({ users: 1, networks: ["10.0.0.0/8"] }),
        await started({ networks: ["10.0.0.0/8"] }, OPEN),
        await started({ users: 1 }, "--admin-allow", "any"),
      ])
        expect([good.access.heldBack, good.access.wantsRemote]).toEqual([null, true]);
    },
  );
});
