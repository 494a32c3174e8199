// Rows of Cache-Status: what the gateway says about what it did with a request.
import { hit, miss, type Section, stale, store, validated } from "../row.ts";

const FRESH = "Cache-Control: max-age=3600";
const TAG = 'ETag: "a"';

const says = (member: string) => ({ expect: { has: `Cache-Status: ~${member}` } });

export const status: readonly Section[] = [
  {
    rule: "RFC 9211, Cache-Status",
    must: [
      ["a fetch, and a hit", store(FRESH, says("sluice; fwd=")), hit(says("sluice; hit; ttl="))],
      ["stored", store(FRESH, says("; stored")), hit({ expect: { has: "X-Cache-Status: HIT" } })],
      [
        "behind the members of other caches",
        store([FRESH, "Cache-Status: inner; hit"], says("inner; hit, sluice; fwd=")),
        hit(says("inner; hit, sluice; hit")),
      ],
      [
        "validation",
        store(["Cache-Control: max-age=2", TAG]),
        validated({ after: 3, ...says("sluice; fwd=stale; fwd-status=304") }),
      ],
      [
        "a fetch because of staleness",
        store("Cache-Control: max-age=2"),
        miss({ after: 3, ...says("fwd=stale") }),
      ],
      [
        "a stale response",
        store("Cache-Control: max-age=2, stale-while-revalidate=60"),
        stale({ after: 3, ...says("hit; ttl=-") }),
      ],
      [
        "nothing for the URL, and another variant",
        store([FRESH, "Vary: Foo"], { request: "Foo: 1", ...says("sluice; fwd=uri-miss") }),
        miss({
          request: "Foo: 2",
          response: [FRESH, "Vary: Foo"],
          ...says("sluice; fwd=vary-miss"),
        }),
      ],
      ["not stored, and why", store("Cache-Control: no-store", says("; detail=no_store"))],
      [
        "an unsafe method",
        miss({ method: "POST", request: "Content-Length: 0", ...says("fwd=method") }),
      ],
      ["a bypass", miss({ request: "Authorization: a", ...says("fwd=bypass") })],
    ],
  },
  {
    rule: "RFC 9211, Cache-Status, with ignore_client_no_cache off",
    settings: { ignore_client_no_cache: false },
    must: [
      [
        "a fetch because of the request",
        store(FRESH),
        miss({ request: "Cache-Control: no-cache", ...says("fwd=request") }),
      ],
    ],
  },
];
