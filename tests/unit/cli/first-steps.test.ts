// The first steps that `make run` prints name what is served, and nothing else.
import { expect, test } from "bun:test";
import { firstSteps } from "../../../src/cli/first-steps.ts";

const http = { protocol: "http", address: "0.0.0.0", port: 81 } as const;
const https = { protocol: "https", address: "::", port: 82 } as const;

test("with both listeners", () => {
  const text = firstSteps("http://127.0.0.1:83", [http, https]);
  expect(text).toContain("Sites are on http://127.0.0.1:81 and https://[::1]:82.");
  expect(text).toContain("curl http://127.0.0.1:83/api/v1/services");
  expect(text).toContain("curl -i http://127.0.0.1:81/");
  expect(text).not.toMatch(/:(8080|8443|9080)\b/);
});

test("without the one whose port is taken", () => {
  const text = firstSteps("http://127.0.0.1:83", [https]);
  expect(text).toContain("Sites are on https://[::1]:82.");
  expect(text).not.toContain("curl -i");
  expect(firstSteps("http://127.0.0.1:83", [])).toContain("No site is served.");
});
