// In which order plugins run, explained and with the instances that there are; changes nothing.
import { Badge, Drawer, Group, List, Stack, Text, Title } from "@mantine/core";
import { useResourceList } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { HelpText } from "../../parts/page-layout.tsx";
import { Scope } from "./plugin-scope.tsx";
import { useSchemasByName } from "./plugin-schemas.ts";
import { placeOf, type PluginSchema, rankOf } from "./plugin-values.ts";

/** Moments of a request at which plugins run, first to last. */
const moments: readonly {
  readonly phase: string;
  readonly title: string;
  readonly text: string;
}[] = [
  {
    phase: "connect",
    title: "A connection comes",
    text: "Stream routes, before a target is asked.",
  },
  { phase: "pre_auth", title: "A request comes", text: "Before anybody knows who sends it." },
  { phase: "auth", title: "Who is it?", text: "The first that recognises the client decides." },
  { phase: "access", title: "May it pass?", text: "Rules and limits." },
  { phase: "request", title: "It goes to the target", text: "Changes on the way." },
  { phase: "response", title: "The answer comes back", text: "In the reverse order." },
  { phase: "log", title: "It is over", text: "Nothing can be changed any more." },
];

interface Props {
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

export function OrderDrawer({ isOpen, onClose }: Props) {
  return (
    <Drawer
      opened={isOpen}
      onClose={onClose}
      title="In which order plugins run"
      position="right"
      size="lg"
    >
      <Stack>
        <List size="sm" spacing={6}>
          <List.Item>
            At each moment, the one with the highest place runs first. Every plugin has a place that
            suits it; the priority of an instance changes it.
          </List.Item>
          <List.Item>
            Of several instances of one plugin, only the one in the most special place runs:
            consumer with route, consumer with service, consumer, route, service, everything.
          </List.Item>
          <List.Item>
            Answers pass the plugins in the reverse order. What one plugin answers passes only those
            before it.
          </List.Item>
        </List>
        {isOpen && <Moments />}
      </Stack>
    </Drawer>
  );
}

function Moments() {
  const { data = [] } = useResourceList("plugins");
  const schemas = useSchemasByName();
  const running = data.filter(({ enabled }) => enabled);
  const ofPhase = (phase: string) => running.filter(({ name }) => has(schemas.get(name), phase));
  const order = (one: Read<"plugins">, other: Read<"plugins">) =>
    placeOf(other, schemas.get(other.name)) - placeOf(one, schemas.get(one.name)) ||
    one.name.localeCompare(other.name) ||
    rankOf(one) - rankOf(other);
  const shown = moments.filter(({ phase }) => ofPhase(phase).length > 0);
  if (shown.length === 0) return <HelpText>No plugin is enabled yet.</HelpText>;
  return shown.map(({ phase, title, text }) => {
    const sorted = ofPhase(phase).toSorted(order);
    return (
      <section key={phase} aria-label={title}>
        <Title order={3} size="h5">
          {title}
        </Title>
        <HelpText>{text}</HelpText>
        <List type="ordered" size="sm" mt={4} spacing={4}>
          {(phase === "response" ? sorted.toReversed() : sorted).map((plugin) => (
            <List.Item key={plugin.id}>
              <Group gap={6}>
                <Text size="sm" fw={600}>
                  {plugin.label ?? plugin.name}
                </Text>
                <Badge size="xs" variant="light" color="gray" tt="none">
                  {placeOf(plugin, schemas.get(plugin.name))}
                </Badge>
                <Scope plugin={plugin} />
              </Group>
            </List.Item>
          ))}
        </List>
      </section>
    );
  });
}

const has = (schema: PluginSchema | undefined, phase: string): boolean =>
  schema?.phases.includes(phase) ?? false;
