// A path that a policy refuses cannot be reached in any other spelling that a target would read the same way; spellings are made up by the thousand.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { type LenientOrigin, startLenientOrigin } from "../../support/lenient-origin.ts";
import { Random, seedOfRun } from "../../support/random.ts";
import { exchange } from "../../support/raw-exchange.ts";

const REQUESTS = 2000;
const seed = seedOfRun();

let origin: LenientOrigin;
let gateway: RunningDataPlane;
beforeAll(async () => {
  origin = startLenientOrigin();
  gateway = await startDataPlane({
    services: [{ name: "s", targets: [{ port: origin.port }] }],
    routes: [{ name: "all", service_id: "s" }],
  });
});
afterAll(async () => {
  await gateway.stop();
  origin.stop();
});

const decoded = (path: string) =>
  path.replace(/%([0-7][0-9a-f])/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
const withoutParameters = (path: string) => path.replace(/;[^/]*/g, "");
const slashed = (path: string) => path.replace(/\\/g, "/");
const merged = (path: string) => path.replace(/\/{2,}/g, "/");
const resolved = (path: string) => {
  const out: string[] = [];
  for (const segment of path.split("/").slice(1))
    if (segment === "..") out.pop();
    else if (segment !== ".") out.push(segment);
  return `/${out.join("/")}`;
};

/** In every order that some server has. */
const readers: ((path: string) => string)[][] = [
  [],
  [decoded],
  [merged],
  [withoutParameters],
  [resolved],
  [decoded, resolved],
  [resolved, decoded],
  [decoded, merged, resolved],
  [withoutParameters, decoded, merged, resolved],
  [decoded, withoutParameters, merged, resolved],
  [decoded, slashed, merged, resolved],
  [slashed, decoded, slashed, withoutParameters, merged, resolved],
  [withoutParameters, decoded, slashed, merged],
];
const readings = (target: string) =>
  readers.map((steps) => steps.reduce((path, step) => step(path), target.replace(/\?.*$/, "")));

/** Ways to spell what leads to /admin/users. */
function spelling(random: () => number): string {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const letter = (character: string) => {
    if (random() < 0.8) return character;
    const hex = character.charCodeAt(0).toString(16);
    return `%${pick([hex, hex.toUpperCase()])}`;
  };
  const word = (text: string) => [...text].map(letter).join("");
  const slash = () =>
    random() < 0.55
      ? "/"
      : pick([
          "//",
          "///",
          "%2f",
          "%2F",
          "\\",
          "%5c",
          "%5C",
          "/./",
          "/%2e/",
          "/;/",
          "/;x/",
          "/x/../",
          "/x/%2e%2e/",
          "/x/..;/",
          "%2f/",
          "/%2f",
          "/x%2f../",
          "/.;/",
        ]);
  const end = () =>
    random() < 0.5
      ? ""
      : pick([
          ";",
          ";x=1",
          "%3b",
          "%3Bx",
          "/",
          "//",
          "%2f",
          "/.",
          "/..",
          "?a",
          ";/x",
          "/%2e",
          "%20",
          ".",
          "%00",
          ";a%2fb",
          "\\",
        ]);
  return (
    slash() +
    word("admin") +
    (random() < 0.2 ? pick([";x", "%3bx", ";"]) : "") +
    slash() +
    word("users") +
    end()
  );
}

const isUnder = (path: string, prefix: string) => path === prefix || path.startsWith(`${prefix}/`);

async function outcomes(): Promise<{ passed: string[]; refused: number }> {
  const source = new Random(seed);
  const random = () => source.next();
  const passed: string[] = [];
  let refused = 0;
  for (let count = 0; count < REQUESTS; count++) {
    const target = spelling(random);
    origin.forget();
    const { answers } = await exchange(`GET ${target} HTTP/1.1\r\nHost: h\r\n\r\n`, {
      port: gateway.port,
    });
    const status = answers[0]?.status ?? 0;
    if (status === 403) refused++;
    const seen = origin.executed[0]?.target;
    if (seen !== undefined) passed.push(seen);
  }
  return { passed, refused };
}

test.each([
  ["a prefix", { rules: [{ when: { path: ["/admin"] }, action: "deny" }] }, "/admin"],
  ["an exact path", { rules: [{ when: { path: ["=/admin/users"] }, action: "deny" }] }, null],
  [
    "an expression",
    { rules: [{ when: { path: ["~^/admin/users(?:/|$)"] }, action: "deny" }] },
    "/admin/users",
  ],
  [
    "all but one",
    { rules: [{ when: { path: ["/public", "/x"] }, action: "allow" }], default: "deny" },
    "/admin",
  ],
])("no spelling bypasses a rule about %s", async (_, config, prefix) => {
  await gateway.apply({ plugins: [{ name: "access-policy", config }] });
  const { passed, refused } = await outcomes();
  // Most spellings are understood, and the rule is what stops them.
  expect(refused).toBeGreaterThan(REQUESTS / 10);
  const through = passed.filter((target) =>
    readings(target).some((path) =>
      prefix === null ? path === "/admin/users" : isUnder(path, prefix),
    ),
  );
  expect({ seed, through }).toEqual({ seed, through: [] });
});
