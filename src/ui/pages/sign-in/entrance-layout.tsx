// The frame of the pages before sign-in; knows no form.
import { Center, Group, Paper, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { ProductMark } from "../../parts/product-mark.tsx";

interface Props {
  readonly title: string;
  readonly text?: ReactNode;
  readonly children: ReactNode;
}

export function EntranceLayout({ title, text, children }: Props) {
  return (
    <Center component="main" mih="100dvh" p="md">
      <Paper withBorder p="xl" w="100%" maw={440}>
        <Stack>
          <Group gap="xs">
            <ProductMark size={26} />
            <Text fw={650}>Sluice</Text>
          </Group>
          <Title order={1} size="h3">
            {title}
          </Title>
          {text}
          {children}
        </Stack>
      </Paper>
    </Center>
  );
}
