// Colors and defaults of all components, with WCAG AA contrast in light and dark; knows no page.
import {
  createTheme,
  type CSSVariablesResolver,
  Drawer,
  Menu,
  Modal,
  Notification,
} from "@mantine/core";

/** The icon button needs an accessible name. */
const closable = { closeButtonProps: { "aria-label": "Close" } };

export const theme = createTheme({
  primaryColor: "brand",
  // Darker than the usual shade: white text on it has a contrast of more than 4.5.
  primaryShade: { light: 7, dark: 7 },
  cursorType: "pointer",
  defaultRadius: "md",
  fontFamily:
    'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace',
  headings: { fontWeight: "650" },
  components: {
    Drawer: Drawer.extend({ defaultProps: closable }),
    // It would add a focusable element that is no item to the list of items.
    Menu: Menu.extend({ defaultProps: { withInitialFocusPlaceholder: false } }),
    Modal: Modal.extend({ defaultProps: closable }),
    Notification: Notification.extend({ defaultProps: closable }),
    // It is a <header>, which would be a second banner of the page.
    ...Object.fromEntries(
      ["DrawerHeader", "ModalHeader"].map((name) => [
        name,
        { defaultProps: { role: "presentation" } },
      ]),
    ),
    // A form moves the focus to its first error, which an open list would cover.
    ...Object.fromEntries(
      ["Autocomplete", "MultiSelect", "Select", "TagsInput"].map((name) => [
        name,
        { defaultProps: { openOnFocus: false } },
      ]),
    ),
  },
  colors: {
    brand: [
      "#e8f5fb",
      "#d3e8f3",
      "#a6d1e7",
      "#74b9db",
      "#4ca5d0",
      "#3398ca",
      "#2490c7",
      "#15709f",
      "#0c6491",
      "#00577f",
    ],
    // The library's palette, with a button shade that has enough contrast for white text.
    red: [
      "#fff5f5",
      "#ffe3e3",
      "#ffc9c9",
      "#ffa8a8",
      "#ff8787",
      "#ff6b6b",
      "#fa5252",
      "#d62f2f",
      "#cf2b2b",
      "#c92a2a",
    ],
  },
});

/** Mantine's secondary text and its dark-mode links have too little contrast for WCAG AA. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "#5c636a",
    "--mantine-color-placeholder": "#6a7178",
    "--mantine-color-error": "#c92a2a",
    "--mantine-color-body": "#ffffff",
    // Text on a light background of the same color.
    "--mantine-color-teal-light-color": "#04543b",
    "--mantine-color-green-light-color": "#1d5f2a",
    "--mantine-color-yellow-light-color": "#7a3e00",
    "--mantine-color-orange-light-color": "#8a3300",
    "--mantine-color-red-light-color": "#a61e1e",
    "--mantine-color-gray-light-color": "#3d444b",
    "--mantine-color-blue-light-color": "#164f8c",
    "--sluice-canvas": "#f6f8fa",
  },
  dark: {
    "--mantine-color-dimmed": "#a9adb3",
    "--mantine-color-placeholder": "#9a9ea4",
    "--mantine-color-error": "#ff8787",
    "--mantine-color-anchor": "#74b9db",
    "--sluice-canvas": "#1b1c1e",
  },
});
