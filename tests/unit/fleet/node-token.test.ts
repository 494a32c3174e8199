// Tokens with which nodes read from each other: what each is for, how long, and how often.
import { describe, expect, test } from "bun:test";
import { createNodeReader } from "../../../src/api/node-reader.ts";
import { accessTable } from "../../../src/api/access.ts";
import { NODE_TOKEN_HEADER } from "../../../src/control/node-reads.ts";
import { ApiError } from "../../../src/model/error.ts";
import { NodeTokens, TOKEN_MS } from "../../../src/fleet/node-token.ts";

const NOW = 1_800_000_000_000;
const PATH = "/api/v1/requests?limit=5";

const tokensOf = (id: string, { key = "key", now = (): number => NOW } = {}) =>
  new NodeTokens({ key: () => key, id, now });

const scope = { node: "n2", path: PATH, role: "viewer" } as const;

test("a token is accepted by its node for its path, with the role of the user", () => {
  const token = tokensOf("n1").sign(scope);
  expect(tokensOf("n2").verify(token, PATH)).toEqual({ id: "n1", role: "viewer" });
});

describe("a token is refused", () => {
  const token = tokensOf("n1").sign(scope);
  const [asker, time, role, nonce, mac] = token.split(".") as [
    string,
    string,
    string,
    string,
    string,
  ];

  test("by another node, for another path or query, and with another key", () => {
    expect(tokensOf("n3").verify(token, PATH)).toBeNull();
    for (const path of ["/api/v1/requests", `${PATH}0`, "/api/v1/stats?limit=5"])
      expect(tokensOf("n2").verify(token, path)).toBeNull();
    expect(tokensOf("n2", { key: "other" }).verify(token, PATH)).toBeNull();
  });

  test("when any part of it was changed", () => {
    const changed = [
      ["n3", time, role, nonce, mac],
      [asker, String(Number(time) + 1), role, nonce, mac],
      [asker, time, "admin", nonce, mac],
      [asker, time, role, `${nonce.slice(0, -1)}${nonce.endsWith("A") ? "B" : "A"}`, mac],
      [asker, time, role, nonce, "A".repeat(43)],
      [asker, time, role, nonce, mac.slice(1)],
      [asker, time, role, nonce, ""],
      [asker, time, role, nonce],
    ];
    const verifier = tokensOf("n2");
    for (const parts of changed) expect(verifier.verify(parts.join("."), PATH)).toBeNull();
    for (const text of ["", ".", "....", `${token}.`, ` ${token}`, "x".repeat(100_000)])
      expect(verifier.verify(text, PATH)).toBeNull();
    expect(verifier.verify(token, PATH)).not.toBeNull();
  });

  test("the second time", () => {
    const verifier = tokensOf("n2");
    const other = tokensOf("n1").sign(scope);
    expect(verifier.verify(token, PATH)).not.toBeNull();
    expect(verifier.verify(token, PATH)).toBeNull();
    expect(verifier.verify(other, PATH)).not.toBeNull();
  });

  test("half a minute before and after its time", () => {
    const at = (offset: number) => tokensOf("n2", { now: () => NOW + offset }).verify(token, PATH);
    expect(at(TOKEN_MS)).not.toBeNull();
    expect(at(-TOKEN_MS)).not.toBeNull();
    expect(at(TOKEN_MS + 1)).toBeNull();
    expect(at(-TOKEN_MS - 1)).toBeNull();
  });
});

describe("the management API admits a token", () => {
  const [asking, asked] = [tokensOf("n1"), tokensOf("n2")];
  const reader = createNodeReader(asked, { table: accessTable, now: () => NOW });
  const ask = (method: string, target: string, token = asking.sign({ ...scope, path: target })) =>
    reader(
      new Request(`http://10.0.0.2:9080${target}`, {
        method,
        headers: { [NODE_TOKEN_HEADER]: token },
      }),
      "192.0.2.1",
    );

  test("for the reads of a view, as a principal with the user's role", () => {
    for (const path of [
      PATH,
      "/api/v1/stats",
      "/api/v1/events?kinds=config",
      "/api/v1/requests/stream",
      "/api/v1/services/web/health",
    ])
      expect(ask("GET", path)).toMatchObject({
        role: "viewer",
        method: "node",
        actor: "node n1",
        address: "192.0.2.1",
      });
  });

  test("for no other request, and never with `node`", () => {
    const refused = (method: string, target: string) => {
      try {
        ask(method, target);
      } catch (error) {
        return error instanceof ApiError && error.status === 401 ? error.message : error;
      }
      return "admitted";
    };
    const others = accessTable
      .filter(({ nodes }) => nodes !== true)
      .map(({ path }) => ["GET", path] as const);
    expect(others.length).toBeGreaterThan(60);
    for (const [method, target] of [
      ...others,
      ["HEAD", PATH],
      ["POST", "/api/v1/requests"],
      ["PATCH", "/api/v1/stats"],
      ["PUT", "/api/v1/targets/t/health"],
      ["DELETE", "/api/v1/services/web/health"],
      ["GET", "/api/v1/requests?node=all"],
      ["GET", "/api/v1/stats?range=1h&node=n3"],
      ["GET", "/api/v1/stats?n%6fde=all"],
      ["GET", "/nothing"],
    ] as const)
      expect(refused(method, target)).toBe("authentication is required");
  });

  test("and leaves requests without one to the usual rules", () => {
    expect(reader(new Request("http://10.0.0.2:9080/api/v1/stats"), "192.0.2.1")).toBeNull();
  });
});
