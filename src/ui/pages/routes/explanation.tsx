// What would become of a request: the route that wins, those that lose and why, the plugins, the target; asks nothing itself.
import { Alert, Anchor, Badge, Code, Group, List, Stack, Text } from "@mantine/core";
import { Link } from "wouter";
import type { Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { Fact, Section } from "../../parts/page-layout.tsx";
import { StatusDot, type Tone } from "../../parts/status.tsx";
import { placeOf } from "../services/target-weight.ts";

type Explanation = Schemas["Explanation"];

interface Props {
  readonly explanation: Explanation;
}

interface Verdict {
  readonly title: string;
  readonly color: string;
}

function verdictOf({ outcome, route, service, status }: Explanation): Verdict {
  const name = route === null ? "" : (route.name ?? route.id);
  switch (outcome) {
    case "proxy":
    case "websocket":
      return service === null
        ? {
            title: `Route ${name} takes it; it has no service, so only plugins answer`,
            color: "teal",
          }
        : {
            title: `Route ${name} takes it and passes it to ${service.name ?? service.id}`,
            color: "teal",
          };
    case "redirect":
      return { title: `Route ${name} takes it and answers with a redirect`, color: "teal" };
    case "maintenance":
      return { title: `Route ${name} takes it and shows the maintenance page`, color: "yellow" };
    case "default_site":
      return { title: "No route takes it: the default site answers", color: "yellow" };
    case "unavailable":
      return { title: `Route ${name} takes it, but no target can be used`, color: "red" };
    case "refused":
      return { title: `It is refused${status === null ? "" : ` with ${status}`}`, color: "red" };
    default:
      return outcome satisfies never;
  }
}

export function ExplanationView({ explanation }: Props) {
  const { title, color } = verdictOf(explanation);
  const { detail, status } = explanation;
  return (
    <section aria-live="polite" aria-label="Result">
      <Alert color={color} title={title} mb="md">
        {detail ?? (status === null ? "It arrives at the target below." : `Status ${status}.`)}
      </Alert>
      <Way explanation={explanation} />
      <Candidates explanation={explanation} />
      <Plugins explanation={explanation} />
    </section>
  );
}

function Way({ explanation }: Props) {
  const { listener, route, service, upstream, status } = explanation;
  return (
    <Section title="The way it takes">
      <Stack gap={6}>
        <Fact label="Comes in at">
          {listener === null ? "no listener" : <To page="listeners" {...listener} />}
        </Fact>
        <Fact label="Route">{route === null ? "none" : <To page="routes" {...route} />}</Fact>
        <Fact label="Service">
          {service === null ? "none" : <To page="services" {...service} />}
        </Fact>
        {status !== null && <Fact label="Answer">{status}</Fact>}
        {upstream !== null && (
          <>
            <Fact label="Asks for">
              <Code>{upstream.url}</Code>
            </Fact>
            <Fact label="With the host">
              <Code>{upstream.host}</Code>
            </Fact>
            <Fact label={upstream.targets.length === 1 ? "Target" : "One of the targets"}>
              <Stack gap={4}>
                {upstream.targets.map((target) => (
                  <Group key={target.id} gap="xs">
                    <span className="mono">{placeOf(target)}</span>
                    <StatusDot state={target.health.state} detail={target.health.last_error} />
                  </Group>
                ))}
                {upstream.targets.length === 0 && "none can be used"}
              </Stack>
            </Fact>
          </>
        )}
      </Stack>
    </Section>
  );
}

interface ToProps {
  readonly page: string;
  readonly id: string;
  readonly name: string | null;
}

const To = ({ page, id, name }: ToProps) => (
  <Anchor component={Link} href={pagePath(page, id)} size="sm">
    {name ?? id}
  </Anchor>
);

function Candidates({ explanation: { candidates } }: Props) {
  return (
    <Section
      title="Routes that were looked at"
      text="The closest ones, in the order in which they are tried. The first that fits wins."
    >
      {candidates.length === 0 ? (
        <Text size="sm" c="dimmed">
          No route comes near: none has this host.
        </Text>
      ) : (
        <List listStyleType="none" spacing="xs" aria-label="Routes that were looked at">
          {candidates.map(({ route, matched, reason, position }) => (
            <List.Item key={route.id}>
              <Group gap="xs" align="baseline">
                <Text size="sm" c="dimmed" w={24} ta="right">
                  {position ?? "–"}
                </Text>
                <To page="routes" {...route} />
                <StatusDot {...stateOf(matched, reason)} />
                {reason !== null && (
                  <Text size="sm" c="dimmed" style={{ overflowWrap: "anywhere" }}>
                    {reason}
                  </Text>
                )}
              </Group>
            </List.Item>
          ))}
        </List>
      )}
    </Section>
  );
}

function stateOf(matched: boolean, reason: string | null): { state: string; tone: Tone } {
  if (!matched) return { state: "does not fit", tone: "bad" };
  return reason === null ? { state: "wins", tone: "good" } : { state: "would fit", tone: "idle" };
}

function Plugins({ explanation: { plugins, route } }: Props) {
  if (route === null) return null;
  return (
    <Section title="Plugins" text="In the order in which they begin.">
      {plugins.length === 0 ? (
        <Text size="sm" c="dimmed">
          None runs.
        </Text>
      ) : (
        <Stack gap="xs">
          {plugins.map(({ id, name, label, scope, phases, applies }) => (
            <Group key={id} gap="xs" align="baseline">
              <To page="plugins" id={id} name={label ?? name} />
              {scope !== null && (
                <Badge size="xs" variant="outline" color="gray" tt="none">
                  {scope}
                </Badge>
              )}
              <StatusDot
                state={
                  applies === null ? "depends on who asks" : applies ? "runs" : "does not apply"
                }
                tone={applies === true ? "good" : "idle"}
              />
              <Text size="xs" c="dimmed">
                {phases.join(", ")}
              </Text>
            </Group>
          ))}
        </Stack>
      )}
    </Section>
  );
}
