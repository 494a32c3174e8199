// The result of a route test: the matched route, the other candidates and why they lost, plugins, target; sends nothing itself.
import { Alert, Anchor, Badge, Button, Code, Group, List, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import type { Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { Fact, Section } from "../../parts/page-layout.tsx";
import { StatusDot, type Tone } from "../../parts/status.tsx";
import { addressOf } from "../services/target-weight.ts";

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
    case "upgrade":
      return service === null
        ? {
            title: `Route ${name} matches; it has no service, so only plugins can respond`,
            color: "teal",
          }
        : {
            title: `Route ${name} matches and forwards to ${service.name ?? service.id}`,
            color: "teal",
          };
    case "redirect":
      return { title: `Route ${name} matches and redirects`, color: "teal" };
    case "maintenance":
      return {
        title: `Route ${name} matches and responds with the maintenance page`,
        color: "yellow",
      };
    case "default_site":
      return { title: "No route matched: the default site responds", color: "yellow" };
    case "unavailable":
      return { title: `Route ${name} matches, but no target is available`, color: "red" };
    case "refused":
      return {
        title: `The request is rejected${status === null ? "" : ` with ${status}`}`,
        color: "red",
      };
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
        {detail ?? (status === null ? "The target below receives it." : `Status ${status}.`)}
      </Alert>
      <RequestPath explanation={explanation} />
      <Candidates explanation={explanation} />
      <Plugins explanation={explanation} />
    </section>
  );
}

function RequestPath({ explanation }: Props) {
  const { listener, route, service, upstream, status, engine, grpc, upgrade } = explanation;
  const isRaw = explanation.path_handling === "raw";
  return (
    <Section title="Path through the gateway">
      <Stack gap={6}>
        <Fact label="Listener">
          {listener === null ? "none" : <ObjectLink page="listeners" {...listener} />}
        </Fact>
        {engine !== null && (
          <Fact label="Engine">
            {engine.name}: {engine.reason}
          </Fact>
        )}
        {grpc !== null && (
          <Fact label="gRPC method">
            <Code>
              {grpc.service}/{grpc.method}
            </Code>
          </Fact>
        )}
        {upgrade !== null && (
          <Fact label="Upgrade">{upgrade.protocols ?? `not forwarded: ${upgrade.reason}`}</Fact>
        )}
        <Fact label="Route">
          {route === null ? "none" : <ObjectLink page="routes" {...route} />}
        </Fact>
        {isRaw && <Fact label="Path">raw: the target receives it as it came</Fact>}
        <Fact label="Service">
          {service === null ? "none" : <ObjectLink page="services" {...service} />}
        </Fact>
        {status !== null && <Fact label="Status">{status}</Fact>}
        {upstream !== null && (
          <>
            <Fact label="Upstream URL">
              <Code>{upstream.url}</Code>
            </Fact>
            <Fact label="Upstream Host header">
              <Code>{upstream.host}</Code>
            </Fact>
            <Fact label={upstream.targets.length === 1 ? "Target" : "Possible targets"}>
              <Stack gap={4}>
                {upstream.targets.map((target) => (
                  <Group key={target.id} gap="xs">
                    <span className="mono">{addressOf(target)}</span>
                    <StatusDot state={target.health.state} detail={target.health.last_error} />
                  </Group>
                ))}
                {upstream.targets.length === 0 && "none available"}
              </Stack>
            </Fact>
          </>
        )}
      </Stack>
    </Section>
  );
}

interface ObjectLinkProps {
  readonly page: string;
  readonly id: string;
  readonly name: string | null;
}

const ObjectLink = ({ page, id, name }: ObjectLinkProps) => (
  <Anchor component={Link} href={pagePath(page, id)} size="sm">
    {name ?? id}
  </Anchor>
);

const SHOWN = 10;

function Candidates({ explanation: { candidates } }: Props) {
  const [isOpen, setOpen] = useState(false);
  const shown = isOpen ? candidates : candidates.slice(0, SHOWN);
  return (
    <Section
      title="Candidate routes"
      text="The closest routes in matching order. The first match wins."
    >
      {candidates.length === 0 ? (
        <Text size="sm" c="dimmed">
          No candidate: no route has this host.
        </Text>
      ) : (
        <List listStyleType="none" spacing="xs" aria-label="Candidate routes">
          {shown.map(({ route, matched, reason, position }) => (
            <List.Item key={route.id}>
              <Group gap="xs" align="baseline">
                <Text size="sm" c="dimmed" w={24} ta="right">
                  {position ?? "–"}
                </Text>
                <ObjectLink page="routes" {...route} />
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
      {shown.length < candidates.length && (
        <Button variant="default" size="xs" mt="sm" onClick={() => setOpen(true)}>
          Show {candidates.length - SHOWN} more
        </Button>
      )}
    </Section>
  );
}

function stateOf(matched: boolean, reason: string | null): { state: string; tone: Tone } {
  if (!matched) return { state: "no match", tone: "bad" };
  return reason === null
    ? { state: "matched", tone: "good" }
    : { state: "also matches", tone: "idle" };
}

function Plugins({ explanation: { plugins, route } }: Props) {
  if (route === null) return null;
  return (
    <Section title="Plugins" text="In execution order.">
      {plugins.length === 0 ? (
        <Text size="sm" c="dimmed">
          None runs.
        </Text>
      ) : (
        <Stack gap="xs">
          {plugins.map(({ id, name, label, scope, phases, applies }) => (
            <Group key={id} gap="xs" align="baseline">
              <ObjectLink page="plugins" id={id} name={label ?? name} />
              {scope !== null && (
                <Badge size="xs" variant="outline" color="gray" tt="none">
                  {scope}
                </Badge>
              )}
              <StatusDot
                state={
                  applies === null ? "depends on the consumer" : applies ? "runs" : "does not apply"
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
