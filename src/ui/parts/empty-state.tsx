// The empty state of a list, with the next step; knows no resource.
import { Center, Paper, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";

interface Props {
  readonly title: string;
  readonly text: string;
  /** Buttons. */
  readonly children?: ReactNode;
}

export function EmptyState({ title, text, children }: Props) {
  return (
    <Paper withBorder p="xl">
      <Center mih={180}>
        <Stack align="center" gap="xs" maw={440} ta="center">
          <Title order={2} size="h4">
            {title}
          </Title>
          <Text c="dimmed">{text}</Text>
          {children}
        </Stack>
      </Center>
    </Paper>
  );
}
