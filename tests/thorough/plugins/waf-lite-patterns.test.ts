// No pattern of waf-lite can be made slow by a request.
import { expect, test } from "bun:test";
import { rules } from "../../../src/plugins/waf-lite/rules.ts";

const { checkSync } = require("recheck/lib/browser.js") as typeof import("recheck");

const sources = rules.flatMap(({ id, patterns }) =>
  patterns.map(({ source }, at) => [`${id} ${at + 1}`, source] as const),
);

test.each(sources)("%s matches in linear time", (_, source) => {
  // As regex-safety.ts asks, with any time, because no request waits: work is limited, not time.
  const times = { timeout: null, seedingTimeout: null, incubationTimeout: null };
  expect(checkSync(source, "", { ...times, attackTimeout: null }).status).toBe("safe");
});
