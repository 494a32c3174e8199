// What it takes to add a collection, a field, a balancer and a DNS provider: the files, and that the result works.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { reply, startOrigin } from "../../support/origin.ts";
import { addContacts } from "../../support/added-collection.ts";
import { ScratchTree } from "../../support/scratch-tree.ts";

const LAST = `// Always the last eligible target. Knows no health.
import { type Balancer, type BalancerTarget, isEligible, type Load, type PickRequest } from "./balancer.ts";

export class Last<T extends BalancerTarget> implements Balancer<T> {
  readonly #candidates: readonly T[];
  readonly #load: Load<T>;

  constructor(candidates: readonly T[], load: Load<T>) {
    this.#candidates = candidates;
    this.#load = load;
  }

  pick({ tried }: PickRequest): T | null {
    return this.#candidates.findLast((each) => isEligible(each, this.#load, tried)) ?? null;
  }
}
`;

const PAPER = `// DNS that a person writes by hand.
import { defineDnsProvider, secret, settings } from "./definition.ts";

export default defineDnsProvider({
  type: "paper",
  title: "Paper",
  sentTo: "https://paper.example",
  help: "Read the records from the log.",
  config: settings({ token: secret("Token of the account") }),
  example: { token: { $secret: "paper" } },
  create: () => {
    throw new Error("no client");
  },
});
`;

const tree = new ScratchTree();
const touched: Record<string, readonly string[]> = {};

const adding = (what: string, add: () => void): void => {
  touched[what] = tree.touchedBy(add);
};

let gateway: Gateway;

beforeAll(async () => {
  adding("collection", () => addContacts(tree));
  adding("field", () =>
    tree.edit("src/model/route.ts", [
      [
        "    ...upgradeFields,",
        '    owner: since(5, t.String({ maxLength: 64, default: "nobody", description: "Who looks after it" })),\n    ...upgradeFields,',
      ],
    ]),
  );
  adding("balancer", () => {
    tree.add("src/dataplane/balancer/last.ts", LAST);
    tree.edit("src/dataplane/balancer/algorithms.ts", [
      [
        "import { LeastConnections }",
        'import { Last } from "./last.ts";\nimport { LeastConnections }',
      ],
      [
        '    case "first":',
        '    case "last":\n      return new Last(candidates, load);\n    case "first":',
      ],
    ]);
    tree.edit("src/model/service.ts", [
      ['"consistent_hash", "first"]', '"consistent_hash", "first", "last"]'],
    ]);
  });
  adding("DNS provider", () => {
    tree.add("src/acme/dns/paper.ts", PAPER);
    tree.edit("src/acme/dns/index.ts", [
      ["import rfc2136 from", 'import paper from "./paper.ts";\nimport rfc2136 from'],
      ["  webhook,\n", "  webhook,\n  paper,\n"],
    ]);
    tree.edit("src/model/dns-provider.ts", [['  "webhook",\n', '  "webhook",\n  "paper",\n']]);
  });
  tree.checkTypes();
  gateway = await startGateway({ main: join(tree.path, "src/main.ts") });
});

afterAll(async () => {
  await gateway?.stop();
  tree.remove();
});

test("each addition touches few files", () => {
  expect(touched).toEqual({
    collection: [
      "src/model/contact.ts",
      "src/model/gateway-config.ts",
      "src/ui/pages.ts",
      "src/ui/pages/contacts-page.tsx",
    ],
    field: ["src/model/route.ts"],
    balancer: [
      "src/dataplane/balancer/algorithms.ts",
      "src/dataplane/balancer/last.ts",
      "src/model/service.ts",
    ],
    "DNS provider": ["src/acme/dns/index.ts", "src/acme/dns/paper.ts", "src/model/dns-provider.ts"],
  });
});

describe("a new collection", () => {
  test("has endpoints with validation, unique names, references and filters", async () => {
    await gateway.ok("POST", "/api/v1/routes", { name: "shop" });
    const made = await gateway.ok("POST", "/api/v1/contacts", { name: "Ann", route_ids: ["shop"] });
    const [route] = await gateway.ok("GET", "/api/v1/routes");
    expect(made).toMatchObject({ name: "Ann", phone: "", route_ids: [route.id] });
    expect(await gateway.ok("GET", "/api/v1/contacts?route_id=shop")).toEqual([made]);
    expect(await gateway.ok("GET", "/api/v1/contacts/Ann")).toEqual(made);
    const refused = async (body: object) => {
      const response = await gateway.api("POST", "/api/v1/contacts", body);
      return [response.status, ((await response.json()) as { error: string }).error];
    };
    expect(await refused({ name: "Ann" })).toEqual([409, 'name: contact "Ann" exists already']);
    expect(await refused({ name: "B", route_ids: ["x"] })).toEqual([
      400,
      'route_ids[0]: route "x" does not exist',
    ]);
    expect(await refused({ name: "B", fax: "1" })).toEqual([400, "fax: is not a known field"]);
    const removed = await gateway.api("DELETE", "/api/v1/routes/shop");
    expect([removed.status, await removed.json()]).toEqual([
      409,
      { error: 'route "shop" is used by contact "Ann"' },
    ]);
  });

  test("is in the export, in revisions, in the audit log and in the database after a restart", async () => {
    await gateway.ok("PATCH", "/api/v1/contacts/Ann", { phone: "1" });
    const exported = await gateway.ok("GET", "/api/v1/export");
    expect(exported.contacts).toMatchObject([{ name: "Ann", phone: "1" }]);
    const revisions = await gateway.ok("GET", "/api/v1/revisions");
    expect(revisions.at(-1).summary).toBe('update contact "Ann"');
    const entries = await gateway.ok("GET", "/api/v1/audit?kind=contact");
    expect(entries.at(-1)).toMatchObject({ action: "update", kind: "contact", object_name: "Ann" });
    await gateway.restart();
    expect(await gateway.ok("GET", "/api/v1/contacts/Ann")).toMatchObject({ phone: "1" });
  });

  test("is in the API reference, with its roles", async () => {
    const { paths, components } = await gateway.ok("GET", "/docs/json");
    expect(Object.keys(paths["/api/v1/contacts/{id}"])).toEqual(["get", "put", "patch", "delete"]);
    expect(Object.keys(components.schemas)).toContain("ContactInput");
    expect(JSON.stringify(paths["/api/v1/contacts"].post)).toContain("admin");
    expect(JSON.stringify(paths["/api/v1/contacts"].get)).toContain("route_id");
  });
});

test("a new field has its default in objects from before, and is written and explained", async () => {
  expect(await gateway.ok("GET", "/api/v1/routes/shop")).toMatchObject({ owner: "nobody" });
  expect(await gateway.ok("PATCH", "/api/v1/routes/shop", { owner: "Ann" })).toMatchObject({
    owner: "Ann",
  });
  const { components } = await gateway.ok("GET", "/docs/json");
  expect(components.schemas.Route.properties.owner.description).toBe("Who looks after it");
});

test("the forms have the new field and the new algorithm", () => {
  const print = (name: string) =>
    `import { formSchemaOf } from "./src/model/form-schema.ts"; console.log(JSON.stringify(formSchemaOf("${name}")));`;
  const fieldsOf = (name: string) =>
    JSON.parse(tree.run(process.execPath, "-e", print(name))).properties;
  expect(fieldsOf("routes").owner).toMatchObject({ default: "nobody", maxLength: 64 });
  expect(fieldsOf("services").algorithm.enum).toContain("last");
});

test("a new balancer distributes requests", async () => {
  const origins = ["one", "two"].map((text) => startOrigin({ answer: () => reply(text) }));
  const targets = origins.map(({ port }) => ({ host: "127.0.0.1", port }));
  await gateway.ok("POST", "/api/v1/services", { name: "app", algorithm: "last", targets });
  await gateway.ok("PATCH", "/api/v1/routes/shop", { service_id: "app" });
  const texts = await Promise.all(
    [1, 2, 3].map(async () => await (await fetch(`http://127.0.0.1:${gateway.httpPort}/`)).text()),
  );
  expect(texts).toEqual(["two", "two", "two"]);
});

test("a new DNS provider is listed with its form and stores its secret", async () => {
  const types = await gateway.ok("GET", "/api/v1/dns-providers/types");
  expect(types).toContainEqual(expect.objectContaining({ type: "paper", title: "Paper" }));
  const made = await gateway.ok("POST", "/api/v1/dns-providers", {
    name: "p",
    type: "paper",
    config: { token: "geheim" },
  });
  expect(JSON.stringify(made)).not.toContain("geheim");
});
