"""The ReFrame tests. ReFrame loads the files beside this one; what they share is in mixins/."""
