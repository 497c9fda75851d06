/* Starts the console: clock, theme, router, live stream, then the page. */
import { render } from "preact";
import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/controls.css";
import "./style/data.css";
import "./style/records.css";
import "./style/views.css";
import "./style/settings.css";
import "./style/policy.css";
import "./style/adapt.css";
import { App } from "./app";
import { startKeys } from "./keys";
import { startRouter } from "./router";
import { startStore } from "./store";
import { startTheme } from "./theme";
import { startClock } from "./time";

startTheme();
startClock();
startRouter();
startKeys();
startStore();
const root = document.getElementById("app");
if (root) {
  render(<App />, root);
}
