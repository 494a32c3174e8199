// Plugins that run for a route, by scope: route, service, global; changes none.
import { Anchor, Badge, Button, Group, Stack, Text } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { Link } from "wouter";
import { useResourceList } from "../../api/queries.ts";
import type { Read, Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { Can, Section } from "../../parts/page-layout.tsx";

type Plugin = Schemas["Plugin"];

interface Scope {
  readonly title: string;
  readonly plugins: readonly Plugin[];
}

/** Of several instances of a plugin, the one with the most specific scope runs. */
function scopesOf({ id, service_id }: Read<"routes">, all: readonly Plugin[]): Scope[] {
  const isGlobal = ({ route_id, service_id: service, consumer_id, stream_route_id }: Plugin) =>
    [route_id, service, consumer_id, stream_route_id].every((key) => key === null);
  return [
    { title: "On this route", plugins: all.filter(({ route_id }) => route_id === id) },
    {
      title: "On its service",
      plugins: all.filter(
        (plugin) =>
          plugin.route_id === null && service_id !== null && plugin.service_id === service_id,
      ),
    },
    { title: "Global", plugins: all.filter(isGlobal) },
  ].filter(({ plugins }) => plugins.length > 0);
}

export function RoutePlugins({ route }: { readonly route: Read<"routes"> }) {
  const plugins = useResourceList("plugins");
  const scopes = scopesOf(route, plugins.data ?? []);
  return (
    <Section
      title="Plugins"
      text="Authentication, limits and changes of its requests."
      actions={
        <Can needs="editor">
          <Button
            size="xs"
            variant="default"
            component={Link}
            href={`${pagePath("plugins", "new")}?route_id=${route.id}`}
            leftSection={<IconPlus size={14} />}
          >
            Add a plugin
          </Button>
        </Can>
      }
    >
      <Stack gap="xs">
        {scopes.map(({ title, plugins: some }) => (
          <Stack key={title} gap={4} role="group" aria-label={title}>
            <Text size="sm" c="dimmed">
              {title}
            </Text>
            {some.map((plugin) => (
              <PluginLine key={plugin.id} plugin={plugin} />
            ))}
          </Stack>
        ))}
        {scopes.length === 0 && plugins.data !== undefined && (
          <Text size="sm" c="dimmed">
            None: requests are forwarded unchanged.
          </Text>
        )}
      </Stack>
    </Section>
  );
}

function PluginLine({ plugin }: { readonly plugin: Plugin }) {
  const { id, name, label, enabled, when, consumer_id } = plugin;
  return (
    <Group gap="xs">
      <Anchor component={Link} href={pagePath("plugins", id)} size="sm" fw={600}>
        {label ?? name}
      </Anchor>
      {label !== null && (
        <Text size="sm" c="dimmed">
          {name}
        </Text>
      )}
      {when !== null && <Note text="for some requests" />}
      {consumer_id !== null && <Note text="for one consumer" />}
      {!enabled && <Note text="off" />}
    </Group>
  );
}

const Note = ({ text }: { readonly text: string }) => (
  <Badge size="xs" variant="light" color="gray" tt="none">
    {text}
  </Badge>
);
