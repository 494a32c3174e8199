// The first steps with a new gateway; changes nothing itself.
import { Button, Group, Paper, Skeleton, Stack, Text, ThemeIcon, Title } from "@mantine/core";
import { IconCheck } from "@tabler/icons-react";
import { Link } from "wouter";
import { useResourceList, useStatus } from "../../api/queries.ts";
import type { Role } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { Can } from "../../parts/page-layout.tsx";

interface Step {
  readonly title: string;
  readonly text: string;
  readonly isDone: boolean;
  readonly needs: Role;
  readonly href: string;
  readonly label: string;
}

/** Empty as soon as a route had a request. `isUnused`: no request in the last month. */
export function FirstSteps({ isUnused }: { readonly isUnused: boolean }) {
  const status = useStatus();
  const routes = useResourceList("routes");
  const streams = useResourceList("stream-routes");
  if (status.data === undefined || routes.data === undefined || streams.data === undefined)
    return <Skeleton h={290} mb="md" aria-busy="true" />;
  const hasRoutes = routes.data.length + streams.data.length > 0;
  if (hasRoutes && !isUnused) return null;
  const steps: readonly Step[] = [
    {
      title: "Create the first administrator",
      text: "Until then, anyone who can reach this address can change everything.",
      isDone: status.data.authentication === "enabled",
      needs: "admin",
      href: pagePath("users", "new"),
      label: "Create a user",
    },
    {
      title: "Publish your first application",
      text: "Enter its domain and upstream URL. HTTPS is one switch.",
      isDone: hasRoutes,
      needs: "editor",
      href: pagePath("applications", "new"),
      label: "Add an application",
    },
    {
      title: "Send a request through the gateway",
      text: "Open the domain in a browser and watch the request arrive.",
      isDone: !isUnused,
      needs: "viewer",
      href: pagePath("requests"),
      label: "Watch requests",
    },
  ];
  const next = steps.find(({ isDone }) => !isDone);
  return (
    <Paper withBorder p="lg" mb="md" component="section" aria-label="First steps">
      <Title order={2} size="h4" mb="sm">
        First steps
      </Title>
      <Stack gap="md" component="ol" m={0} p={0} style={{ listStyle: "none" }}>
        {steps.map((step, index) => (
          <StepRow key={step.title} step={step} number={index + 1} isNext={step === next} />
        ))}
      </Stack>
    </Paper>
  );
}

interface RowProps {
  readonly step: Step;
  readonly number: number;
  readonly isNext: boolean;
}

function StepRow({ step, number, isNext }: RowProps) {
  const { title, text, isDone, needs, href, label } = step;
  return (
    <Group component="li" gap="sm" align="flex-start" wrap="nowrap">
      <ThemeIcon
        radius="xl"
        variant={isDone ? "filled" : "light"}
        color={isDone ? "teal.8" : "gray"}
      >
        {isDone ? <IconCheck size={16} aria-label="Done" /> : number}
      </ThemeIcon>
      <Stack gap={4} align="flex-start" style={{ minWidth: 0, flex: 1 }}>
        <Text fw={600} {...(isDone ? { c: "dimmed" } : {})}>
          {title}
        </Text>
        {!isDone && (
          <>
            <Text size="sm" c="dimmed">
              {text}
            </Text>
            <Can needs={needs}>
              <Button
                component={Link}
                href={href}
                size="xs"
                variant={isNext ? "filled" : "default"}
              >
                {label}
              </Button>
            </Can>
          </>
        )}
      </Stack>
    </Group>
  );
}
