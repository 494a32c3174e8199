// Names of what a plugin instance is put on; changes nothing.
import { Anchor, Group, Text } from "@mantine/core";
import { Link } from "wouter";
import { useResource } from "../../api/queries.ts";
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
  const { data } = useResource(resource, id);
  const name = data === undefined ? id : nameOf(data.value);
  return (
    <Text size="sm" component="span">
      {resources[resource].word}{" "}
      <Anchor component={Link} href={pagePath(resource, id)} size="sm" underline="always">
        {name}
      </Anchor>
    </Text>
  );
}
