// Cache-Status (RFC 9211): every member that the cache can write is a structured field with parameters of the registered types.
import { expect, test } from "bun:test";
import { parseList, Token } from "structured-headers";
import {
  cacheForwards,
  type CacheOutcome,
  cacheReasons,
  cacheStatuses,
} from "../../../src/model/cache-outcome.ts";
import {
  addCacheStatus,
  cacheStatus,
  forwarded,
  HIT,
} from "../../../src/plugins/response-cache/cache-status.ts";

const read = (value: string) =>
  parseList(value).map(([name, parameters]) => {
    expect(name).toEqual(new Token("sluice"));
    const entries = [...(parameters as ReadonlyMap<string, unknown>)];
    return Object.fromEntries(
      entries.map(([key, of]) => [key, of instanceof Token ? of.toString() : of]),
    );
  });

test("every member is a structured field and says the same as the outcome", () => {
  let members = 0;
  for (const status of cacheStatuses)
    for (const fwd of [null, ...cacheForwards])
      for (const reason of [null, ...cacheReasons])
        for (const stored of [true, false])
          for (const collapsed of [true, false, null])
            for (const fwdStatus of [null, 304, 503]) {
              const outcome: CacheOutcome = { status, fwd, stored, collapsed, reason };
              const ttlMs = members % 2 === 0 ? null : (members - 3000) * 500;
              expect(read(cacheStatus(outcome, { ttlMs, fwdStatus }))).toEqual([
                {
                  ...(fwd === null ? { hit: true } : { fwd }),
                  ...(fwdStatus === null ? {} : { "fwd-status": fwdStatus }),
                  ...(stored ? { stored } : {}),
                  ...(collapsed === null ? {} : { collapsed }),
                  ...(ttlMs === null ? {} : { ttl: Math.floor(ttlMs / 1000) }),
                  ...(reason === null || reason === fwd ? {} : { detail: reason }),
                },
              ]);
              members++;
            }
  expect(members).toBeGreaterThan(10_000);
});

test("a member follows those of caches before it", () => {
  const headers = new Headers({
    "Cache-Status": '"inner cache"; hit; ttl=3',
    "X-Cache-Status": "x",
  });
  addCacheStatus(headers, { ...forwarded("uri-miss", false), reason: "set_cookie" });
  expect(headers.get("cache-status")).toBe(
    '"inner cache"; hit; ttl=3, sluice; fwd=uri-miss; collapsed=?0; detail=set_cookie',
  );
  expect(headers.get("x-cache-status")).toBe("MISS");
});

test.each([
  [1, "0"],
  [999, "0"],
  [1000, "1"],
  [0, "0"],
  [-1, "-1"],
  [-1000, "-1"],
])("%i ms of freshness are a ttl of %s", (ttlMs, ttl) => {
  expect(cacheStatus(HIT, { ttlMs, fwdStatus: null })).toBe(`sluice; hit; ttl=${ttl}`);
});
