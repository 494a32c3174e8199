// The list of plugin instances with scope and execution order; configures nothing.
import { Button, Text } from "@mantine/core";
import { IconListNumbers } from "@tabler/icons-react";
import { useState } from "react";
import { useResourceList } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { ResourceTable } from "../../parts/resource-table.tsx";
import { OrderDrawer } from "./order-drawer.tsx";
import { PluginDirectory } from "./plugin-directory.tsx";
import { useSchemasByName } from "./plugin-schemas.ts";
import { type PluginSchema, purposes } from "./plugin-values.ts";
import { orderKey, placeOf } from "./plugin-order.ts";
import { Scope } from "./plugin-scope.tsx";

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
        text="Authentication, limits, headers, caching and more."
        actions={
          <Button
            variant="default"
            leftSection={<IconListNumbers size={16} />}
            onClick={() => setOrderShown(true)}
          >
            Execution order
          </Button>
        }
        subtitle={(plugin) => (
          <Subtitle plugin={plugin} summary={schemas.get(plugin.name)?.summary} />
        )}
        columns={[
          {
            title: "Scope",
            sortBy: ({ route_id, service_id, consumer_id }) =>
              [route_id, service_id, consumer_id].filter((id) => id !== null).length,
            render: (plugin) => <Scope plugin={plugin} />,
          },
          {
            title: "Condition",
            sortBy: ({ when }) => (when === null ? null : Object.keys(when).join(", ")),
            width: "8rem",
            render: ({ when }) => (
              <Text size="sm" {...(when === null ? { c: "dimmed" } : {})}>
                {when === null ? "always" : Object.keys(when).join(", ")}
              </Text>
            ),
          },
          {
            title: "Order",
            sortBy: (plugin) => orderKey(plugin, schemas),
            width: "minmax(0, 0.8fr)",
            render: (plugin) => <Place plugin={plugin} schemas={schemas} />,
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
          text: "Authenticate clients, limit rates, set headers, cache responses: choose a plugin from the gallery.",
        }}
      />
      <PluginDirectory />
      <OrderDrawer isOpen={isOrderShown} onClose={() => setOrderShown(false)} />
    </>
  );
}

interface PlaceProps {
  readonly plugin: Instance;
  readonly schemas: ReadonlyMap<string, PluginSchema>;
}

function Place({ plugin, schemas }: PlaceProps) {
  const { data = [] } = useResourceList("plugins");
  return (
    <Text size="sm" {...(plugin.enabled ? {} : { c: "dimmed" })}>
      {plugin.enabled ? placeOf(plugin, data, schemas) : "disabled"}
    </Text>
  );
}

interface SubtitleProps {
  readonly plugin: Instance;
  readonly summary: string | undefined;
}

/** A space reserves the line until the summary is loaded, so that rows do not shift. */
function Subtitle({ plugin, summary = "\u00a0" }: SubtitleProps) {
  const { label, name, description } = plugin;
  const text = description === "" ? summary : description;
  // The row title is the label, so the subtitle names the plugin.
  return label === null || label === "" ? text : `${name}: ${text}`;
}
