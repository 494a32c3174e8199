// Which stored answers are to be forgotten, as people say it; knows nothing of where they are stored.
import { type Static, Type as t } from "@sinclair/typebox";

const text = (description: string) =>
  t.Optional(t.String({ minLength: 1, maxLength: 8192, description }));

export const cachePurgeInput = t.Object(
  {
    plugin_id: text("Id or label of an instance of response-cache; absent: all of them"),
    key: text(
      "Exactly this: `shop.example.com/page?a=1`, or `/page?a=1` on any host; a scheme and a port in front do not count",
    ),
    prefix: text("Everything that begins like this, in the form of `key`"),
    tag: text("Everything whose Surrogate-Key holds this word"),
  },
  {
    additionalProperties: false,
    title: "CachePurge",
    description: "At most one of key, prefix and tag; without any of them everything is meant",
  },
);

export type CachePurgeInput = Static<typeof cachePurgeInput>;
