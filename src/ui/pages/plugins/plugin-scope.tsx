// Names of what a plugin instance is put on; changes nothing.
import { Anchor, Group, Text } from "@mantine/core";
import { Link } from "wouter";
import { useResourceList } from "../../api/queries.ts";
import { nameOf, type Read, resources } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { type ScopeField, scopeFields } from "./plugin-values.ts";

/** Each a link. */
export function Scope({ plugin }: { readonly plugin: Pick<Read<"plugins">, ScopeField> }) {
  const set = scopeFields.filter((field) => plugin[field] !== null);
  if (set.length === 0) return <Text size="sm">everything</Text>;
  return (
    <Group gap={4}>
      {set.map((field) => (
        <Place key={field} resource={places[field]} id={plugin[field] ?? ""} />
      ))}
    </Group>
  );
}

const places = {
  service_id: "services",
  route_id: "routes",
  consumer_id: "consumers",
  stream_route_id: "stream-routes",
} as const;

interface PlaceProps {
  readonly resource: (typeof places)[ScopeField];
  readonly id: string;
}

function Place({ resource, id }: PlaceProps) {
  // One request for all rows, which other pages have made already as often as not.
  const { data } = useResourceList(resource);
  const found = data?.find((each) => each.id === id);
  return (
    <Text size="sm" component="span">
      {resources[resource].word}{" "}
      <Anchor component={Link} href={pagePath(resource, id)} size="sm" underline="always">
        {found === undefined ? id : nameOf(found)}
      </Anchor>
    </Text>
  );
}
