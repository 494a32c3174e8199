// The error boundary of pages, so that the rest of the UI stays usable; knows no page.
import { Button, Code, Container, Group, Stack, Text, Title } from "@mantine/core";
import { Component, type ReactNode } from "react";

interface Props {
  readonly children: ReactNode;
}

/** Shows the error and a retry button. Its `key` must change with the page. */
export class ErrorBoundary extends Component<Props, { readonly error: Error | null }> {
  override state = { error: null };

  static getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render(): ReactNode {
    const error: Error | null = this.state.error;
    if (error === null) return this.props.children;
    return <Broken error={error} onRetry={() => this.setState({ error: null })} />;
  }
}

function Broken({ error, onRetry }: { readonly error: Error; readonly onRetry: () => void }) {
  return (
    <Container size="sm" py="xl" role="alert">
      <Stack>
        <Title order={2}>This page failed to render</Title>
        <Text c="dimmed">
          Only this page: the gateway works without it. After an upgrade of the gateway, reload it.
        </Text>
        <Code block>{error.message}</Code>
        <Group>
          <Button onClick={() => location.reload()}>Reload</Button>
          <Button variant="default" onClick={onRetry}>
            Retry
          </Button>
        </Group>
      </Stack>
    </Container>
  );
}
