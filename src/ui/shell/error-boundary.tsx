// Catches what a page throws while it is drawn, so that the rest stays usable; knows no page.
import { Button, Code, Container, Group, Stack, Text, Title } from "@mantine/core";
import { Component, type ReactNode } from "react";

interface Props {
  readonly children: ReactNode;
}

/** Shows what went wrong and offers to draw again. Give it a `key` that changes with the page. */
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
        <Title order={2}>This page broke</Title>
        <Text c="dimmed">
          The gateway goes on serving. If the gateway was just upgraded, loading the page anew
          helps.
        </Text>
        <Code block>{error.message}</Code>
        <Group>
          <Button onClick={() => location.reload()}>Load anew</Button>
          <Button variant="default" onClick={onRetry}>
            Try again
          </Button>
        </Group>
      </Stack>
    </Container>
  );
}
