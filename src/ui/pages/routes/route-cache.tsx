// What the cache has served for a route in the last day; nothing without lookups.
import { Anchor, Stack } from "@mantine/core";
import { Link } from "wouter";
import { useRead } from "../../api/queries.ts";
import type { Read, Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { useNodeQuery } from "../../parts/node-choice.tsx";
import { Fact, Section } from "../../parts/page-layout.tsx";
import { inBytes, inDigits, inPercent } from "../../parts/quantities.ts";

export function RouteCache({ route: { id } }: { readonly route: Pick<Read<"routes">, "id"> }) {
  const query = { route: id, range: "24h", top: 1, ...useNodeQuery() };
  const stats = useRead<Schemas["Stats"]>("stats", { query, everyMs: 30_000 });
  const total = stats.data?.value.history.total;
  if (total === undefined || total.cache_hit_ratio === null) return null;
  const { cache_hit_ratio: ratio, cache_lookups: lookups, cache_bytes: bytes } = total;
  const misses = new URLSearchParams({ route: id, cache: "miss" });
  return (
    <Section
      title="Cache"
      text="The last 24 hours."
      actions={
        <Anchor component={Link} href={`${pagePath("requests")}?${misses}`} size="sm">
          Show recent misses
        </Anchor>
      }
    >
      <Stack gap={6}>
        <Fact label="Hit ratio">
          {inPercent(ratio)} of {inDigits(lookups)} lookups
        </Fact>
        <Fact label="From the cache">{inBytes(bytes)}</Fact>
      </Stack>
    </Section>
  );
}
