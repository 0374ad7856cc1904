"""The static page: the model in JavaScript and the page around it. `pages/site` puts them together."""
