// Asks the gateway to try the stored settings at the provider, and shows each thing that it looked at.
import { Alert, Group, List, Loader, Stack, Text } from "@mantine/core";
import { IconAlertTriangle, IconCheck } from "@tabler/icons-react";
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { useConnection } from "../../api/connection-context.ts";
import type { Schemas } from "../../api/resources.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { Section } from "../../parts/page-layout.tsx";

/** Asks once for each `run`. */
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
  // The button stays in view wherever somebody is in the form; the answer should be as well.
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is shown grows when the answer comes
  useEffect(() => {
    // Not returned: newer browsers answer with a promise here.
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
          <Loader size="sm" aria-label="Asking the provider" />
          <Text size="sm">Asking the provider…</Text>
        </Group>
      </Section>
    );
  if (test.data === undefined) return <ErrorPanel error={test.error} title="Not tested" />;
  const { ok, checks } = test.data;
  return (
    <Section title="Test" text="With the settings as they are stored.">
      <Stack gap="sm">
        <Alert color={ok ? "teal" : "red"} role="status">
          {ok
            ? "Everything that can be checked without a person is right. Now sign in with it, in a private window."
            : "Something is not right yet."}
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
    <IconCheck size={18} color="var(--mantine-color-teal-6)" aria-label="Right:" role="img" />
  ) : (
    <IconAlertTriangle
      size={18}
      color="var(--mantine-color-red-6)"
      aria-label="Not right:"
      role="img"
    />
  );
}
