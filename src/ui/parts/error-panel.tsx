// An error with the request id for the logs; knows no page.
import { Alert, Button, Code, Group, Stack, Text } from "@mantine/core";
import { ApiError, toMessage } from "../api/error.ts";

interface Props {
  readonly error: unknown;
  readonly title?: string;
  readonly onRetry?: () => unknown;
}

/** An error with its request id and an optional retry button. */
export function ErrorPanel({ error, title = "Request failed", onRetry }: Props) {
  const id = error instanceof ApiError ? error.requestId : null;
  return (
    <Alert color="red" title={title} role="alert">
      <Stack gap="xs" align="flex-start">
        <Text size="sm" style={{ overflowWrap: "anywhere" }}>
          {toMessage(error)}
        </Text>
        {id !== null && (
          <Group gap={6}>
            <Text size="xs">Request</Text>
            <Code>{id}</Code>
          </Group>
        )}
        {onRetry !== undefined && (
          <Button size="xs" variant="default" onClick={() => onRetry()}>
            Retry
          </Button>
        )}
      </Stack>
    </Alert>
  );
}
