// A folded section that opens on a click or on an error inside; knows no field.
import { Card, Collapse, Group, Stack, Text, Title, UnstyledButton } from "@mantine/core";
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react";
import { type ReactNode, useId, useState } from "react";
import { HelpText } from "./page-layout.tsx";

interface Props {
  readonly title: string;
  readonly text?: ReactNode;
  /** Summary of the values; shown while folded. */
  readonly summary?: ReactNode;
  /** Whether it is initially open. Default: false. */
  readonly isOpenAtFirst?: boolean;
  /** Paths of the fields inside: an error in one of them opens the section. */
  readonly fields?: readonly string[];
  /** `form.errors`. */
  readonly errors?: Readonly<Record<string, ReactNode>>;
  readonly children: ReactNode;
}

/** For rarely changed settings. */
export function FoldedSection(props: Props) {
  const { title, text, summary, isOpenAtFirst = false, fields = [], errors = {}, children } = props;
  const [isWanted, setWanted] = useState(isOpenAtFirst);
  const id = useId();
  const isWrong = Object.keys(errors).some((path) =>
    fields.some((field) => path === field || path.startsWith(`${field}.`)),
  );
  const isOpen = isWanted || isWrong;
  const Icon = isOpen ? IconChevronDown : IconChevronRight;
  return (
    <Card withBorder component="section" aria-label={title} mb="md" p={0}>
      <Title order={2} size="h4">
        <UnstyledButton
          aria-expanded={isOpen}
          aria-controls={id}
          onClick={() => setWanted(!isOpen)}
          w="100%"
          p={{ base: "sm", sm: "lg" }}
          type="button"
        >
          <Group wrap="nowrap" gap="sm" align="flex-start">
            <Icon size={20} stroke={1.6} style={{ flexShrink: 0, marginTop: 3 }} />
            <Stack gap={0} style={{ minWidth: 0, flex: 1 }}>
              <span>{title}</span>
              {text !== undefined && (
                <Text size="sm" c="dimmed" fw={400} component="span">
                  {text}
                </Text>
              )}
              {!isOpen && summary !== undefined && summary !== "" && (
                <Text size="sm" fw={400} component="span" mt={2}>
                  {summary}
                </Text>
              )}
            </Stack>
          </Group>
        </UnstyledButton>
      </Title>
      <Collapse expanded={isOpen} id={id}>
        <Stack px={{ base: "sm", sm: "lg" }} pb={{ base: "sm", sm: "lg" }}>
          {children}
        </Stack>
      </Collapse>
    </Card>
  );
}

/** A heading inside a section. */
export function SubHead({ title, text }: { readonly title: string; readonly text?: ReactNode }) {
  return (
    <Stack gap={0} mt="xs">
      <Title order={3} size="h6">
        {title}
      </Title>
      {text !== undefined && <HelpText>{text}</HelpText>}
    </Stack>
  );
}
