// Tests the stored settings at the provider and shows each check.
import { Alert, Group, List, Loader, Stack, Text } from "@mantine/core";
import { IconAlertTriangle, IconCheck } from "@tabler/icons-react";
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { useConnection } from "../../api/connection-context.ts";
import type { Schemas } from "../../api/resources.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { Section } from "../../parts/page-layout.tsx";

/** Runs once for each `run`. */
export function ConnectionTest({ run }: { readonly run: number }) {
  const connection = useConnection();
  const test = useQuery({
    queryKey: ["sso/test", run],
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    queryFn: async ({ signal }) =>
      (await connection.send<Schemas["SsoTest"]>("/sso/test", { method: "POST", signal })).value,
  });
  const place = useRef<HTMLDivElement>(null);
  // The button is always visible, so the result is scrolled into view.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the section grows when the response arrives
  useEffect(() => {
    // Not returned: newer browsers return a promise here.
    place.current?.scrollIntoView({ block: "center" });
  }, [test.isPending]);
  return (
    <div ref={place}>
      <Findings test={test} />
    </div>
  );
}

function Findings({ test }: { readonly test: UseQueryResult<Schemas["SsoTest"]> }) {
  if (test.isPending)
    return (
      <Section title="Test">
        <Group gap="xs" role="status">
          <Loader size="sm" aria-label="Contacting the provider" />
          <Text size="sm">Contacting the provider…</Text>
        </Group>
      </Section>
    );
  if (test.data === undefined) return <ErrorPanel error={test.error} title="Test failed" />;
  const { ok, checks } = test.data;
  return (
    <Section title="Test" text="Uses the stored settings.">
      <Stack gap="sm">
        <Alert color={ok ? "teal" : "red"} role="status">
          {ok
            ? "All automatic checks passed. Now sign in with a private browser window."
            : "Some checks failed."}
        </Alert>
        <List size="sm" spacing={6} listStyleType="none" style={{ overflowWrap: "anywhere" }}>
          {checks.map((check) => (
            <List.Item key={check.name} icon={<Mark isOk={check.ok} />}>
              {check.message}
            </List.Item>
          ))}
        </List>
      </Stack>
    </Section>
  );
}

function Mark({ isOk }: { readonly isOk: boolean }) {
  return isOk ? (
    <IconCheck size={18} color="var(--mantine-color-teal-6)" aria-label="Passed:" role="img" />
  ) : (
    <IconAlertTriangle
      size={18}
      color="var(--mantine-color-red-6)"
      aria-label="Failed:"
      role="img"
    />
  );
}
