// The scope of a plugin instance as links; changes nothing.
import { Anchor, Group, Text } from "@mantine/core";
import { Link } from "wouter";
import { useResourceList } from "../../api/queries.ts";
import { nameOf, type Read, resources } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { type ScopeField, scopeFields } from "./plugin-values.ts";

/** Each a link. */
export function Scope({ plugin }: { readonly plugin: Pick<Read<"plugins">, ScopeField> }) {
  const set = scopeFields.filter((field) => plugin[field] !== null);
  if (set.length === 0) return <Text size="sm">global</Text>;
  return (
    <Group gap={4}>
      {set.map((field) => (
        <ScopeLink key={field} resource={scopePages[field]} id={plugin[field] ?? ""} />
      ))}
    </Group>
  );
}

const scopePages = {
  service_id: "services",
  route_id: "routes",
  consumer_id: "consumers",
  stream_route_id: "stream-routes",
} as const;

interface ScopeObjectProps {
  readonly resource: (typeof scopePages)[ScopeField];
  readonly id: string;
}

function ScopeLink({ resource, id }: ScopeObjectProps) {
  // One cached request for all rows.
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
