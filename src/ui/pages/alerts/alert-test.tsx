// Sends a test message and shows the result; knows no delivery method.
import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useConnection } from "../../api/connection-context.ts";
import { useRefresh } from "../../api/changes.tsx";
import type { Schemas } from "../../api/resources.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { Section } from "../../parts/page-layout.tsx";

interface Props {
  readonly id: string;
  /** Unsaved changes are not part of a test. */
  readonly isDirty: boolean;
}

export function AlertTest({ id, isDirty }: Props) {
  const connection = useConnection();
  const refresh = useRefresh();
  const test = useMutation({
    mutationFn: async () =>
      (await connection.send<Schemas["AlertTest"]>(`/alerts/${id}/test`, { method: "POST" })).value,
    onSettled: () => refresh(["alerts"]),
  });
  return (
    <Section
      title="Test"
      text="Sends one test message now, even if the alert is off."
      actions={
        <Button
          variant="default"
          loading={test.isPending}
          disabled={isDirty}
          onClick={() => test.mutate()}
        >
          Send a test
        </Button>
      }
    >
      <Stack gap="xs" aria-live="polite">
        {isDirty && (
          <Text size="sm" c="dimmed">
            Save first: the test uses the stored settings.
          </Text>
        )}
        {test.error !== null && <ErrorPanel error={test.error} />}
        {test.data !== undefined && (
          <Alert
            color={test.data.ok ? "teal" : "red"}
            title={test.data.ok ? "Test delivered" : "Test not delivered"}
          >
            <Group gap="xs">
              <Text size="sm" style={{ overflowWrap: "anywhere" }}>
                {test.data.message}
              </Text>
              <Text size="xs">
                {test.data.destination}, {test.data.duration_ms} ms
              </Text>
            </Group>
          </Alert>
        )}
      </Stack>
    </Section>
  );
}
