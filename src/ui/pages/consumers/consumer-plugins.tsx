// The plugins with this consumer as scope or as anonymous consumer; edits none.
import { Anchor, Button, Group, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import { useResourceList } from "../../api/queries.ts";
import { nameOf, type Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { Can, HelpText, Section } from "../../parts/page-layout.tsx";

interface Props {
  readonly consumer: Read<"consumers">;
}

export function ConsumerPlugins({ consumer }: Props) {
  const { data = [] } = useResourceList("plugins");
  const own = data.filter(({ consumer_id: id }) => id === consumer.id);
  const anonymous = data.filter(({ config }) => config["anonymous_consumer"] === consumer.id);
  return (
    <Section
      title="Plugins"
      text="Plugins with this consumer as scope override those of routes and services."
      actions={
        <Can needs="editor">
          <Button
            size="xs"
            variant="default"
            component={Link}
            href={`${pagePath("plugins", "new")}?consumer_id=${consumer.id}`}
          >
            Add a plugin
          </Button>
        </Can>
      }
    >
      <Stack gap={4}>
        {own.length === 0 && <HelpText>No plugins.</HelpText>}
        {own.map((plugin) => (
          <Line key={plugin.id} plugin={plugin} text={plugin.enabled ? "" : "disabled"} />
        ))}
        {anonymous.map((plugin) => (
          <Line
            key={plugin.id}
            plugin={plugin}
            text="anonymous consumer for clients without credentials"
          />
        ))}
      </Stack>
    </Section>
  );
}

interface LineProps {
  readonly plugin: Read<"plugins">;
  readonly text: string;
}

function Line({ plugin, text }: LineProps) {
  return (
    <Group gap={8}>
      <Anchor component={Link} href={pagePath("plugins", plugin.id)} size="sm">
        {nameOf(plugin)}
      </Anchor>
      <Text size="sm" c="dimmed">
        {text}
      </Text>
    </Group>
  );
}
