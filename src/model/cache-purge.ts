// Which cached responses to purge, as users name them; knows nothing of the cache.
import { type Static, Type as t } from "@sinclair/typebox";

const text = (description: string) =>
  t.Optional(t.String({ minLength: 1, maxLength: 8192, description }));

export const cachePurgeInput = t.Object(
  {
    plugin_id: text("ID or label of an instance of response-cache; absent: all of them"),
    key: text(
      "Exact key: `shop.example.com/page?a=1`, or `/page?a=1` on any host; scheme and port are ignored",
    ),
    prefix: text("Prefix of keys, in the form of `key`"),
    tag: text("Responses whose Surrogate-Key or Cache-Tag has this tag"),
    soft: t.Optional(
      t.Boolean({
        description:
          "Soft purge: the responses become stale instead of being removed, so that stale_while_revalidate and " +
          "stale_if_error may still serve them while the service is asked again. Default: false",
      }),
    ),
  },
  {
    additionalProperties: false,
    title: "CachePurge",
    description:
      "At most one of key, prefix and tag; without any of them the whole cache is purged",
  },
);

export type CachePurgeInput = Static<typeof cachePurgeInput>;

/** Selects stored responses. */
export type Purge =
  | { readonly by: "all" }
  /** `host/path?query`, or `/path?query` on any host; without query only requests without one. */
  | { readonly by: "key"; readonly value: string }
  /** Keys with this prefix, in the same form. */
  | { readonly by: "prefix"; readonly value: string }
  /** One of the tags of their Surrogate-Key. */
  | { readonly by: "tag"; readonly value: string };
