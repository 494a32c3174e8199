// The description of a plugin; knows no plugin.
import { Anchor, Code, Collapse, List, Stack, Table, Text } from "@mantine/core";
import { useState } from "react";
import { Section } from "../../parts/page-layout.tsx";
import { Marked } from "../../parts/schema/field-frame.tsx";
import { defaultPlace } from "./plugin-order.ts";
import { useSchemasByName } from "./plugin-schemas.ts";
import { type PluginSchema, scopes } from "./plugin-values.ts";

/** The first paragraph; the rest is folded. */
export function PluginText({ schema }: { readonly schema: PluginSchema }) {
  const [isOpen, setOpen] = useState(false);
  const schemas = useSchemasByName();
  const blocks = toBlocks(schema.description);
  // A paragraph that ends with a colon includes the next one.
  const first = blocks.slice(0, blocks[0]?.endsWith(":") ? 2 : 1);
  const rest = blocks.slice(first.length);
  const scopePages = scopes
    .filter(({ value }) => schema.scopes.includes(value))
    .map(({ label }) => label.toLowerCase().replace(/^an? /, ""));
  return (
    <Section
      title="Description"
      actions={
        <Anchor component="button" type="button" size="sm" onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Show less" : "Show more"}
        </Anchor>
      }
    >
      <Stack gap="xs">
        {first.map((text) => (
          <Block key={text} text={text} />
        ))}
        <Collapse expanded={isOpen}>
          <Stack gap="xs">
            {rest.map((text) => (
              <Block key={text} text={text} />
            ))}
            <Text size="sm" c="dimmed">
              Phases: {schema.phases.join(", ")}. {defaultPlace(schema, schemas)} by default.
              Scopes: {scopePages.join(", ")}.
            </Text>
          </Stack>
        </Collapse>
      </Stack>
    </Section>
  );
}

const toBlocks = (markdown: string): readonly string[] =>
  markdown.split(/\n{2,}/).filter((block) => block.trim() !== "");

/** The subset of Markdown that descriptions use. */
function Block({ text }: { readonly text: string }) {
  const lines = text.split("\n");
  if (text.startsWith("```"))
    return <Code block>{lines.slice(1, lines.at(-1) === "```" ? -1 : undefined).join("\n")}</Code>;
  if (text.startsWith("|")) return <Grid lines={lines} />;
  if (/^[-*] /.test(text))
    return (
      <List size="sm" spacing={4}>
        {text.split(/\n[-*] /).map((item) => (
          <List.Item key={item}>
            <Inline text={item.replace(/^[-*] /, "")} />
          </List.Item>
        ))}
      </List>
    );
  return (
    <Text size="sm" style={{ overflowWrap: "anywhere" }}>
      <Inline text={text.replace(/^#+ /, "")} />
    </Text>
  );
}

/** Links point to files outside of the UI, so they become text, as does bold. */
const Inline = ({ text }: { readonly text: string }) => (
  <Marked text={text.replaceAll(/\[([^\]]+)\]\([^)]*\)/g, "$1").replaceAll("**", "")} />
);

function Grid({ lines }: { readonly lines: readonly string[] }) {
  const rows = lines
    .filter((line) => !/^\|[\s|:-]+\|$/.test(line))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  const [head = [], ...body] = rows;
  return (
    <Table.ScrollContainer minWidth={320} type="native">
      <Table fz="sm">
        <Table.Thead>
          <Table.Tr>
            {head.map((cell) => (
              <Table.Th key={cell}>{cell}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {body.map((cells) => (
            <Table.Tr key={cells.join()}>
              {cells.map((cell) => (
                <Table.Td key={cell}>
                  <Inline text={cell} />
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
