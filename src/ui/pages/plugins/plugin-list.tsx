// The instances of plugins: where each applies and in which order they run; configures nothing.
import { Anchor, Button, Group, Text } from "@mantine/core";
import { IconListNumbers } from "@tabler/icons-react";
import { useState } from "react";
import { Link } from "wouter";
import { useResource } from "../../api/queries.ts";
import { nameOf, type Read, resources } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ResourceTable } from "../../parts/resource-table.tsx";
import { OrderDrawer } from "./order-drawer.tsx";
import { useSchemasByName } from "./plugin-schemas.ts";
import { purposes, type ScopeField, scopeFields } from "./plugin-values.ts";

type Instance = Read<"plugins">;

export function PluginList() {
  const [isOrderShown, setOrderShown] = useState(false);
  const schemas = useSchemasByName();
  const groupOf = ({ name }: Instance) => schemas.get(name)?.group ?? "";
  return (
    <>
      <ResourceTable
        resource="plugins"
        page="plugins"
        title="Plugins"
        text="What happens to requests on their way: sign-in, limits, headers, caching and more."
        actions={
          <Button
            variant="default"
            leftSection={<IconListNumbers size={16} />}
            onClick={() => setOrderShown(true)}
          >
            In which order
          </Button>
        }
        subtitle={(plugin) => (
          <Subtitle plugin={plugin} summary={schemas.get(plugin.name)?.summary} />
        )}
        columns={[
          { title: "Applies to", render: (plugin) => <Scope plugin={plugin} /> },
          {
            title: "When",
            width: "8rem",
            render: ({ when }) => (
              <Text size="sm" {...(when === null ? { c: "dimmed" } : {})}>
                {when === null ? "always" : Object.keys(when).join(", ")}
              </Text>
            ),
          },
          {
            title: "Place",
            width: "6rem",
            render: ({ name, priority }) => (
              <Text size="sm" {...(priority === null ? { c: "dimmed" } : {})}>
                {priority ?? schemas.get(name)?.order ?? ""}
              </Text>
            ),
          },
        ]}
        searchText={(plugin) => `${plugin.name} ${schemas.get(plugin.name)?.summary ?? ""}`}
        states={purposes.map(({ group, title }) => ({
          value: group,
          label: title,
          fits: (plugin: Instance) => groupOf(plugin) === group,
        }))}
        empty={{
          title: "No plugins yet",
          text: "Ask for a key, limit rates, set headers, cache answers: choose from the gallery what should happen to requests.",
        }}
      />
      <OrderDrawer isOpen={isOrderShown} onClose={() => setOrderShown(false)} />
    </>
  );
}

interface SubtitleProps {
  readonly plugin: Instance;
  readonly summary: string | undefined;
}

function Subtitle({ plugin, summary = "" }: SubtitleProps) {
  const { label, name, description } = plugin;
  const text = description === "" ? summary : description;
  // The label stands in for the name of the plugin.
  return label === null || label === "" ? text : `${name}: ${text}`;
}

/** Names of what an instance is put on, each a link. */
export function Scope({ plugin }: { readonly plugin: Pick<Instance, ScopeField> }) {
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
      <Anchor component={Link} href={pagePath(resource, id)} size="sm">
        {name}
      </Anchor>
    </Text>
  );
}
